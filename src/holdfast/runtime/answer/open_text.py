"""A text or reasoning part that still grows."""

from msgspec.structs import replace

from holdfast.schema.part import ReasoningPart, TextPart
from holdfast.schema.times import Span
from holdfast.schema.wire import JsonMap


class OpenText:
    """One open part and its text so far."""

    __slots__ = ("_length", "_pieces", "_saved", "part")

    def __init__(self, part: TextPart | ReasoningPart) -> None:
        self.part = part
        self._pieces: list[str] = []
        self._length = 0
        self._saved = 0

    @property
    def unsaved(self) -> bool:
        """Whether some text is not committed yet."""
        return self._length > self._saved

    def add(self, text: str) -> int:
        """Append, and return the offset of the piece."""
        offset = self._length
        self._pieces.append(text)
        self._length += len(text)
        return offset

    def checkpoint(self) -> TextPart | ReasoningPart:
        """The part with its text so far, to be committed."""
        self._saved = self._length
        self.part = replace(self.part, text=self._joined())
        return self.part

    def final(self, now_ms: int, metadata: JsonMap | None) -> TextPart | ReasoningPart:
        """The part as it ends: closed, with the provider's last metadata.

        The end of a text is trimmed. That of reasoning is not: it may be signed, and then is sent back byte
        for byte.
        """
        start = self.part.time.start if self.part.time is not None else now_ms
        text = self._joined()
        return replace(
            self.part,
            text=text.rstrip() if isinstance(self.part, TextPart) else text,
            time=Span(start=start, end=now_ms),
            metadata=metadata if metadata is not None else self.part.metadata,
        )

    def _joined(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""
