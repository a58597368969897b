"""A file as text that can be edited, and back, byte for byte where nothing was changed."""

from typing import Self

import msgspec

from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.location.write_path import digest
from holdfast.toolkit.output import ToolFailure

BYTES_MAX = 64 << 20
"""As much as `read` looks through: what is larger has no digest there."""

_BOM = b"\xef\xbb\xbf"


class FileText(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. `text` has line feeds alone if every line of the file ends with CRLF, and with
    nothing else: what could not be told apart afterwards stays as it is.
    """

    text: str
    digest: str
    bom: bool = False
    crlf: bool = False

    @classmethod
    def of(cls, data: bytes, path: str) -> Self:
        """The text of a file's content; `ToolFailure` if it is none."""
        bom = data.startswith(_BOM)
        try:
            text = data.removeprefix(_BOM).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolFailure(
                f"{path} is no text in UTF-8 (byte {error.start}), so this tool cannot change it. "
                "Use a program made for its format."
            ) from error
        if "\0" in text:
            raise ToolFailure(f"{path} is a binary file, which this tool cannot change.")
        lines = text.count("\n")
        crlf = lines > 0 and text.count("\r\n") == lines and "\r\r\n" not in text
        return cls(text=text.replace("\r\n", "\n") if crlf else text, digest=digest(data), bom=bom, crlf=crlf)

    def data(self, text: str) -> bytes:
        """Another text in the form of this file."""
        return encoded(text, bom=self.bom, crlf=self.crlf)


def encoded(text: str, *, bom: bool, crlf: bool) -> bytes:
    """A text as a file holds it: with `crlf` every line ends so. A CR that ends no line is left alone."""
    if crlf:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailure(f"The text cannot be written as UTF-8: {error.reason}.") from error
    return _BOM + data if bom and not data.startswith(_BOM) else data


def load(filesystem: Filesystem, target: Resolved) -> bytes:
    """The content of a judged file. Waits for the disk."""
    with filesystem.open(target) as file:
        data = file.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise ToolFailure(
            f"{target.asked} has more than {BYTES_MAX >> 20} MiB, which this tool does not change. "
            "Use a program."
        )
    return data
