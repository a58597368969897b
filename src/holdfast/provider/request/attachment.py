"""Files for the model: sent where the model takes them and the wire's limits allow, else named in words.

A model that learns nothing of a file believes that it saw it, so what cannot be sent is named.
"""

from typing import Final

from holdfast.provider.catalog.model import Modality, Model, WireKind
from holdfast.provider.request import marks
from holdfast.provider.request.request import Media, Text
from holdfast.schema.file_part import FilePart

MIB: Final = 1024 * 1024

# Of one file, as base64. The smallest documented limit of the hosts that speak the wire.
BYTES_MAX: Final[dict[WireKind, int]] = {
    WireKind.ANTHROPIC: 5 * MIB,
    WireKind.OPENAI_CHAT: 20 * MIB,
    WireKind.OPENAI_RESPONSES: 20 * MIB,
    WireKind.GEMINI: 15 * MIB,
    WireKind.BEDROCK: 5 * MIB,
}
PDF_BYTES_MAX: Final = 30 * MIB

# Of a picture that may go to any of them: a session changes its model, a recorded picture stays.
PICTURE_BYTES_MAX: Final = min(BYTES_MAX.values()) - 64
"""As base64; a little is left for what stands before it in an address."""
PICTURE_EDGE_MAX: Final = 2000
"""In pixels. Anthropic refuses more in a request with many pictures; no provider looks at more in detail."""


def modality(mime: str) -> Modality | None:
    """Which sense of a model a file speaks to."""
    kind, _, rest = mime.lower().partition("/")
    match kind:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case "application" if rest == "pdf":
            return "pdf"
        case _:
            return None


def attached(file: FilePart, model: Model) -> Media | Text:
    """The file as the model gets it: itself, or a line that says why not."""
    name = f'"{file.filename}"' if file.filename else f"of type {file.mime}"
    sense = modality(file.mime)
    if marks.is_refused(file, model):
        return Text(
            text=f"[The file {name} was left out: the provider refused a request with it. Tell the user so.]"
        )
    if sense is None or sense not in model.input:
        what = sense or file.mime
        return Text(text=f"[The file {name} was not sent: this model cannot read {what}. Tell the user so.]")
    if not file.url.startswith(("data:", "https:", "http:")):
        return Text(text=f"[The file {name} was not sent: its content is not at hand. Tell the user so.]")
    limit = PDF_BYTES_MAX if sense == "pdf" else BYTES_MAX.get(model.wire)
    size = len(file.url)
    if limit is not None and file.url.startswith("data:") and size > limit:
        return Text(
            text=f"[The file {name} was not sent: with {size / MIB:.1f} MiB it is over the provider's limit "
            f"of {limit / MIB:.0f} MiB. Tell the user so.]"
        )
    return Media(mime=file.mime, url=file.url, filename=file.filename)
