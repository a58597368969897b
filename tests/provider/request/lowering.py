"""What tests about lowering share."""

from holdfast.schema.fault import AbortedFault, MessageData, UnknownData, UnknownFault

ABORTED = AbortedFault(data=MessageData(message="stopped"))


BROKEN = UnknownFault(data=UnknownData(message="broke"))


PNG = "data:image/png;base64,AAAA"
