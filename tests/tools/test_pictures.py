"""Pictures in a result: scaled to what models take, or named in words; what is sent is what is recorded."""

import base64
import io
import struct
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from holdfast.schema.config import ImageConfig
from holdfast.toolkit.output import Attachment, ToolOutput
from holdfast.tools import picture, pictures
from holdfast.tools.picture import PictureLimits

LIMITS = PictureLimits(width_max=200, height_max=200, base64_bytes_max=100_000)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def attached(data: bytes, mime: str = "image/png", name: str | None = "a.png") -> Attachment:
    return Attachment(mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=name)


def opened(file: Attachment) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(file.url.partition(",")[2])))
    image.load()
    return image


async def fit(data: bytes, limits: PictureLimits = LIMITS, **options: Any) -> ToolOutput:
    return await pictures.fit(ToolOutput(text="seen", attachments=(attached(data, **options),)), limits)


def noise(mode: str, width: int, height: int) -> Image.Image:
    return Image.effect_noise((width, height), 90).convert(mode)


async def test_a_picture_that_fits_stays_as_it_is_byte_for_byte() -> None:
    """Also with no note, and with whatever type its tool has named put right."""
    for format in ("PNG", "JPEG", "WEBP"):
        mime = f"image/{format.lower()}"
        data = encoded(Image.new("RGB", (200, 10), "red"), format)
        assert await fit(data, mime=mime) == ToolOutput(text="seen", attachments=(attached(data, mime),))
        assert (await fit(data, mime="image/x")).attachments == (attached(data, mime),)


async def test_other_files_stay_as_they_are() -> None:
    """A PDF, an address: no picture that could be scaled here."""
    files = (
        Attachment(mime="application/pdf", url="data:application/pdf;base64,JVBERi0="),
        Attachment(mime="image/png", url="https://x.example/a.png"),
    )
    assert (await pictures.fit(ToolOutput(attachments=files), LIMITS)).attachments == files


SCALED: dict[str, tuple[Callable[[], bytes], str, tuple[int, int], str]] = {
    "wide": (lambda: encoded(Image.new("RGB", (800, 100)), "PNG"), "image/png", (200, 25), "RGB"),
    "tall": (lambda: encoded(Image.new("L", (100, 800)), "PNG"), "image/png", (25, 200), "L"),
    "a line": (lambda: encoded(Image.new("RGB", (4000, 1)), "PNG"), "image/png", (200, 1), "RGB"),
    "palette": (lambda: encoded(Image.new("P", (400, 400)), "PNG"), "image/png", (200, 200), "RGB"),
    "transparent": (lambda: encoded(Image.new("RGBA", (400, 400)), "PNG"), "image/png", (200, 200), "RGBA"),
    "jpeg": (lambda: encoded(Image.new("RGB", (800, 400)), "JPEG"), "image/jpeg", (200, 100), "RGB"),
    "webp": (lambda: encoded(Image.new("RGB", (800, 400)), "WEBP"), "image/png", (200, 100), "RGB"),
    "cmyk": (lambda: encoded(Image.new("CMYK", (80, 40)), "JPEG"), "image/jpeg", (80, 40), "RGB"),
    "16 bits": (lambda: encoded(Image.new("I;16", (80, 40), 40_000), "PNG"), "image/png", (80, 40), "L"),
    "gif": (lambda: encoded(Image.new("P", (80, 40)), "GIF"), "image/png", (80, 40), "RGB"),
}


@pytest.mark.parametrize("name", SCALED)
async def test_what_models_do_not_take_is_made_into_what_they_do(name: str) -> None:
    """Size, colours and format; the shape of the picture stays."""
    make, mime, size, mode = SCALED[name]
    (file,) = (await fit(make())).attachments
    image = opened(file)
    assert (file.mime, image.size, image.mode) == (mime, size, mode)
    assert len(file.url.partition(",")[2]) <= LIMITS.base64_bytes_max


async def test_the_model_is_told_of_another_size() -> None:
    """It may speak of places in the picture."""
    answer = await fit(encoded(Image.new("RGB", (800, 400)), "PNG"))
    assert answer.text == "seen\n[The picture a.png is shown scaled from 800 × 400 to 200 × 100 pixels.]"


async def test_sixteen_bits_keep_their_brightness() -> None:
    """They are not clipped to white."""
    data = encoded(Image.new("I;16", (8, 8), 0x8000), "PNG")
    assert opened((await fit(data)).attachments[0]).getpixel((0, 0)) == 0x80


async def test_of_an_animation_the_first_frame_is_shown() -> None:
    """In GIF, WebP and PNG alike, and the model is told so."""
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    for format in ("GIF", "WEBP", "PNG"):
        data = encoded(red, format, save_all=True, append_images=[blue], duration=100, lossless=True)
        answer = await fit(data)
        image = opened(answer.attachments[0])
        assert not getattr(image, "is_animated", False)
        assert image.convert("RGB").getpixel((0, 0)) == (255, 0, 0)
        assert answer.text == "seen\n[The picture a.png is animated; its first frame is shown.]"


async def test_a_photo_stands_upright_and_keeps_no_place() -> None:
    """The camera's turn is applied; what else it wrote (where it was taken) is not sent on."""
    photo = Image.new("RGB", (80, 40), "red")
    photo.paste("blue", (0, 0, 40, 40))
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "where I live"
    answer = await fit(encoded(photo, "JPEG", exif=exif))
    image = opened(answer.attachments[0])
    assert (image.size, dict(image.getexif())) == ((40, 80), {})
    red, _, blue = image.getpixel((20, 10))  # type: ignore[misc]
    assert red < 50
    assert blue > 200


async def test_a_turned_photo_fits_when_it_stands() -> None:
    """Width and height are those that the model sees."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGB", (400, 100)), "JPEG", exif=exif)
    limits = PictureLimits(width_max=50, height_max=400, base64_bytes_max=100_000)
    assert opened((await fit(data, limits)).attachments[0]).size == (50, 200)


async def test_too_many_bytes_are_made_fewer() -> None:
    """First by another encoding, then by another size; the result is below the limit."""
    as_jpeg = (await fit(encoded(noise("RGB", 200, 200), "PNG"))).attachments[0]
    assert (as_jpeg.mime, opened(as_jpeg).size) == ("image/jpeg", (200, 200))
    small = PictureLimits(width_max=200, height_max=200, base64_bytes_max=9_000)
    smaller = (await fit(encoded(noise("RGBA", 200, 200), "PNG"), small)).attachments[0]
    assert len(smaller.url.partition(",")[2]) <= 9_000
    assert 20 < opened(smaller).width < 200


def png(width: int, height: int, body: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


SMALL = encoded(noise("RGB", 20, 20), "PNG")
UNFIT: dict[str, tuple[bytes, str]] = {
    "bomb": (png(30_000, 30_000, zlib.compress(b"\0" * 30_001)), "it has 30000 × 30000 pixels"),
    "below Pillow's own limit": (png(8_001, 8_001, b""), "it has 8001 × 8001 pixels"),
    "truncated": (SMALL[:-200], "it cannot be decoded"),
    "no body": (png(8, 8, b""), "it cannot be decoded"),
    "only a head": (SMALL[:20], "it cannot be decoded"),
    "no size": (png(0, 8, b""), "it cannot be decoded"),
    "no picture": (b"<svg/>", "models take JPEG, PNG, GIF and WebP"),
    "another format": (encoded(Image.new("RGB", (8, 8)), "BMP"), "models take JPEG, PNG, GIF and WebP"),
    "nothing": (b"", "models take JPEG, PNG, GIF and WebP"),
    "jpeg": (encoded(noise("RGB", 50, 50), "JPEG")[:-300], "it cannot be decoded"),
    "gif": (b"GIF89a" + b"\xff" * 30, "it cannot be decoded"),
    "webp": (b"RIFF\x10\0\0\0WEBPVP8 ", "it cannot be decoded"),
}


@pytest.mark.parametrize("name", UNFIT)
async def test_what_cannot_be_shown_is_named_in_words(name: str) -> None:
    """With the reason; a model that learns nothing of a picture believes that it saw it."""
    data, why = UNFIT[name]
    answer = await fit(data)
    assert answer.attachments == ()
    assert answer.text.startswith(f"seen\n[The picture a.png is not shown: {why}")


async def test_a_webp_may_have_fewer_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decoder takes more memory for each."""
    monkeypatch.setattr(picture, "WEBP_PIXELS_MAX", 399)
    data = encoded(noise("RGB", 20, 20), "WEBP")
    assert "it has 20 × 20 pixels" in (await fit(data)).text


async def test_base64_that_is_none_is_named_in_words() -> None:
    """It would be refused with the whole request."""
    broken = Attachment(mime="image/png", url="data:image/png;base64,@@@")
    answer = await pictures.fit(ToolOutput(attachments=(broken,)), LIMITS)
    assert answer == ToolOutput(text="[A picture is not shown: its content is no base64.]")


async def test_without_pillow_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else fails."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    answer = await fit(SMALL)
    assert answer == ToolOutput(
        text="seen\n[The picture a.png is not shown: Pillow, which scales pictures, is not installed.]"
    )


async def test_what_may_not_be_scaled_is_left_out() -> None:
    """`attachment.image.auto_resize: false`; what fits is shown."""
    limits = pictures.limits_of(ImageConfig(auto_resize=False, max_width=100, max_height=30))
    assert limits == PictureLimits(width_max=100, height_max=30, resize=False)
    answer = await fit(encoded(Image.new("RGB", (100, 31)), "PNG"), limits)
    assert answer.text == (
        "seen\n[The picture a.png is not shown: it has 100 × 31 pixels, more than the 100 × 30 that are "
        "allowed, and the settings forbid to scale it.]"
    )
    assert len((await fit(encoded(Image.new("RGB", (100, 30)), "PNG"), limits)).attachments) == 1


async def test_only_so_many_pictures_are_shown() -> None:
    """A provider takes a bounded number in one request; the others are counted in words."""
    files = tuple(attached(SMALL) for _ in range(pictures.PICTURES_MAX + 3))
    answer = await pictures.fit(ToolOutput(text="seen", attachments=files), LIMITS)
    assert answer.attachments == files[: pictures.PICTURES_MAX]
    assert answer.text == "seen\n[3 more pictures are not shown: a result shows at most 20.]"


async def test_a_structured_value_is_still_shown_beside_a_note() -> None:
    """The model is shown it as JSON where its tool wrote no text."""
    answer = await pictures.fit(ToolOutput(structured={"a": 1}, attachments=(attached(b""),)), LIMITS)
    assert answer.text.startswith('{\n  "a": 1\n}\n[The picture a.png is not shown: ')


@pytest.mark.ci
async def test_pictures_are_scaled_in_a_thread_and_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoded picture may take 400 MB."""
    import anyio

    running, most, loop = 0, 0, threading.get_ident()
    real = picture.fit

    def counted(data: bytes, limits: PictureLimits) -> Any:
        nonlocal running, most
        assert threading.get_ident() != loop
        running += 1
        most = max(most, running)
        try:
            return real(data, limits)
        finally:
            running -= 1

    monkeypatch.setattr(picture, "fit", counted)
    data = encoded(noise("RGB", 300, 300), "PNG")
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(fit, data)
    assert 1 <= most <= pictures.AT_ONCE
