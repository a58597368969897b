"""A provider's failure as a record keeps it. Pure."""

from holdfast.errors import ProviderError
from holdfast.schema.fault import (
    APIData,
    APIFault,
    ContentFilterFault,
    ContextOverflowData,
    ContextOverflowFault,
    Fault,
    MessageData,
    ProviderAuthData,
    ProviderAuthFault,
)


def fault_of(error: ProviderError, provider: str) -> Fault:
    """The named error of the specification that fits."""
    message = str(error)
    match error.kind:
        case "auth":
            return ProviderAuthFault(data=ProviderAuthData(provider_id=provider, message=message))
        case "context-overflow":
            return ContextOverflowFault(data=ContextOverflowData(message=message, response_body=error.body))
        case "content-filter":
            return ContentFilterFault(data=MessageData(message=message))
        case _:
            return APIFault(data=data_of(error))


def data_of(error: ProviderError) -> APIData:
    """What the provider answered."""
    return APIData(
        message=str(error),
        status_code=error.status,
        is_retryable=error.retryable,
        response_headers=error.headers,
        response_body=error.body,
        metadata={"kind": error.kind},
    )
