"""The pictures of a result: each made to fit what models take, or named in words.

They are made once, before the call is settled: what is recorded is what every later request sends.
"""

import base64
import binascii
from typing import Final

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from msgspec.structs import replace

from holdfast.schema.config import ImageConfig
from holdfast.toolkit.output import Attachment, ToolOutput
from holdfast.tools import bound, picture
from holdfast.tools.picture import PictureLimits, UnfitPicture

PICTURES_MAX: Final = 20
"""Of one result. Requests with more are held to smaller pictures by some providers, or refused."""
AT_ONCE: Final = 1
"""How many pictures this process decodes at a time: each may take 400 MB."""

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("pictures")


def limits_of(config: ImageConfig | None) -> PictureLimits:
    """The limits, with what the settings say."""
    if config is None:
        return PictureLimits()
    given = {
        "width_max": config.max_width,
        "height_max": config.max_height,
        "base64_bytes_max": config.max_base64_bytes,
    }
    limits = PictureLimits(resize=config.auto_resize is not False)
    return replace(limits, **{name: value for name, value in given.items() if value is not None})


async def fit(output: ToolOutput, limits: PictureLimits) -> ToolOutput:
    """The output with its pictures as models take them. The text says what was changed or left out."""
    if not any(map(_is_picture, output.attachments)):
        return output
    files: list[Attachment] = []
    notes: list[str] = []
    pictures = 0
    for file in output.attachments:
        if not _is_picture(file):
            files.append(file)
            continue
        pictures += 1
        if pictures > PICTURES_MAX:
            continue
        shown, note = await anyio.to_thread.run_sync(_fitted, file, limits, limiter=_limit())
        files += [] if shown is None else [shown]
        notes += [] if note is None else [f"[{note}.]"]
    if pictures > PICTURES_MAX:
        notes.append(
            f"[{pictures - PICTURES_MAX} more pictures are not shown: a result shows at most {PICTURES_MAX}.]"
        )
    text = output.text
    if notes and not text and output.structured is not None:
        text = await anyio.to_thread.run_sync(bound.pretty, output.structured)
    return replace(output, text="\n".join([*([text] if text else []), *notes]), attachments=tuple(files))


def _limit() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
        return limiter


def _is_picture(file: Attachment) -> bool:
    return file.mime.lower().startswith("image/") and file.url.startswith("data:")


def _fitted(file: Attachment, limits: PictureLimits) -> tuple[Attachment | None, str | None]:
    """The picture, and what the model has to know of it."""
    name = f"The picture {file.filename}" if file.filename else "A picture"
    try:
        head, _, body = file.url.partition(",")
        if not head.endswith(";base64"):
            raise UnfitPicture("its content is no base64")
        data = base64.b64decode("".join(body.split()), validate=True)
        made = picture.fit(data, limits)
    except (binascii.Error, ValueError):
        return None, f"{name} is not shown: its content is no base64"
    except UnfitPicture as error:
        return None, f"{name} is not shown: {error}"
    notes = []
    if made.animated:
        notes.append("animated; its first frame is shown")
    if made.shown != made.came:
        came, shown = (f"{width} × {height}" for width, height in (made.came, made.shown))
        notes.append(f"shown scaled from {came} to {shown} pixels")
    note = f"{name} is {' and it is '.join(notes)}" if notes else None
    if made.data is data and made.mime == file.mime.lower():
        return file, note
    url = f"data:{made.mime};base64,{base64.b64encode(made.data).decode()}"
    return replace(file, mime=made.mime, url=url), note
