"""Makes one picture fit what models take, with Pillow. Pure, but slow: call it in a thread.

What must stay true: the format is judged by the content, so that no other decoder than the four below is ever
run; the number of pixels is known, and bounded, before a pixel is decoded; a picture that fits stays as it
is, byte for byte, once it was seen to be whole.
"""

import io
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.provider.request import attachment
from holdfast.tools.builtin import file_kind

if TYPE_CHECKING:
    from PIL.Image import Image

PIXELS_MAX: Final = 64_000_000
"""Decoded at four bytes a pixel, this is 256 MB."""
WEBP_PIXELS_MAX: Final = PIXELS_MAX // 2
"""Its decoder holds the picture three times."""
QUALITY: Final = 85
STEPS_MAX: Final = 12
STEP: Final = 0.75
"""How much smaller each next try is, for a picture of too many bytes."""

_ORIENTATION: Final = 0x0112
_ON_ITS_SIDE: Final = 5
"""From this orientation on width and height change places."""
_PLAIN: Final = ("1", "L", "LA", "P", "RGB", "RGBA")
_SIXTEEN_BITS: Final = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")


class PictureLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture must fit. `resize`: whether it may be scaled for that."""

    width_max: int = attachment.PICTURE_EDGE_MAX
    height_max: int = attachment.PICTURE_EDGE_MAX
    base64_bytes_max: int = attachment.PICTURE_BYTES_MAX
    resize: bool = True

    @property
    def bytes_max(self) -> int:
        """The same limit before the encoding, which makes four bytes of three."""
        return self.base64_bytes_max // 4 * 3


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that fits, and in which size it came."""

    data: bytes
    mime: str
    came: tuple[int, int]
    shown: tuple[int, int]
    animated: bool = False


class UnfitPicture(Exception):
    """Why a picture cannot be shown."""


def fit(data: bytes, limits: PictureLimits) -> Picture:
    """The picture as models take it; `UnfitPicture` if it cannot be made so."""
    mime = file_kind.media(data)
    try:
        image = _opened(data, mime)
    except ImportError as error:
        raise UnfitPicture("Pillow, which scales pictures, is not installed") from error
    except UnfitPicture:
        raise
    except Exception as error:  # a decoder may raise anything
        raise UnfitPicture("it cannot be decoded") from error
    width, height = image.size
    if width * height > (WEBP_PIXELS_MAX if mime == "image/webp" else PIXELS_MAX):
        raise UnfitPicture(f"it has {width} × {height} pixels, too many to be decoded; make it smaller")
    try:
        return _fitted(image, data, mime or "", limits)
    except UnfitPicture:
        raise
    except MemoryError as error:
        raise UnfitPicture("there is not enough memory to decode it") from error
    except Exception as error:
        raise UnfitPicture("it cannot be decoded; it may be incomplete") from error


def _opened(data: bytes, mime: str | None) -> "Image":
    """The picture with its head read, no more. The decoders are called by name: `Image.open` would try others
    and would warn of sizes that are judged here.
    """
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    file = io.BytesIO(data)
    match mime:
        case "image/png":
            return PngImagePlugin.PngImageFile(file)
        case "image/jpeg":
            return JpegImagePlugin.JpegImageFile(file)
        case "image/gif":
            return GifImagePlugin.GifImageFile(file)
        case "image/webp":
            return WebPImagePlugin.WebPImageFile(file)
        case _:
            raise UnfitPicture("models take JPEG, PNG, GIF and WebP")


def _fitted(image: "Image", data: bytes, mime: str, limits: PictureLimits) -> Picture:
    turned = image.getexif().get(_ORIENTATION, 1)
    on_its_side = turned >= _ON_ITS_SIDE
    came = image.size[::-1] if on_its_side else image.size
    fits = came[0] <= limits.width_max and came[1] <= limits.height_max
    animated = bool(getattr(image, "is_animated", False))
    # No provider takes every GIF, and one takes none.
    well_known = image.mode in _PLAIN and turned == 1 and mime != "image/gif" and not animated
    if fits and well_known and len(data) <= limits.bytes_max:
        image.load()  # To see that it is whole.
        return Picture(data=data, mime=mime, came=came, shown=came)
    if not limits.resize and not fits:
        raise UnfitPicture(
            f"it has {came[0]} × {came[1]} pixels, more than the {limits.width_max} × {limits.height_max} "
            "that are allowed, and the settings forbid to scale it"
        )
    bounds = (limits.width_max, limits.height_max)
    image = _plain(image, bounds[::-1] if on_its_side else bounds)
    encoded = _encoded(image, limits, lossy=mime == "image/jpeg")
    return Picture(data=encoded[0], mime=encoded[1], came=came, shown=encoded[2], animated=animated)


def _plain(image: "Image", bounds: tuple[int, int]) -> "Image":
    """The first frame, upright, in colours that every decoder knows, within the bounds."""
    from PIL import Image, ImageOps

    if image.mode in _SIXTEEN_BITS:
        # A conversion would clip what is brighter than 255.
        image = image.convert("F").point(lambda value: value * (1 / 256) + 0).convert("L")
    elif image.mode in ("1", "P", "PA"):  # These cannot be scaled smoothly.
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    # A JPEG is decoded in a smaller size at once, which a conversion before this would prevent.
    image.thumbnail(bounds, Image.Resampling.LANCZOS, reducing_gap=2.0)
    image.load()
    image = ImageOps.exif_transpose(image)
    if image.mode not in _PLAIN:
        image.info.pop("icc_profile", None)  # It is of the colours before.
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.info.pop("exif", None)
    return image


def _encoded(image: "Image", limits: PictureLimits, *, lossy: bool) -> tuple[bytes, str, tuple[int, int]]:
    """The picture in bytes, their type, and its size: smaller and smaller until it fits."""
    from PIL import Image

    for _ in range(STEPS_MAX):
        for format in ("JPEG",) if lossy else ("PNG", "JPEG"):
            data = _saved(image, format)
            if len(data) <= limits.bytes_max:
                return data, f"image/{format.lower()}", image.size
        if not limits.resize:
            break
        size = (max(1, int(image.width * STEP)), max(1, int(image.height * STEP)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    raise UnfitPicture(f"it does not fit into the {limits.base64_bytes_max} bytes that a provider takes")


def _saved(image: "Image", format: str) -> bytes:
    from PIL import Image

    if format == "JPEG" and image.mode not in ("L", "RGB"):
        flat = Image.new("RGB", image.size, "white")
        shown = image.convert("RGBA")
        flat.paste(shown, mask=shown.getchannel("A"))
        image = flat
    file = io.BytesIO()
    if format == "JPEG":
        image.save(file, format, quality=QUALITY, optimize=True)
    else:
        image.save(file, format)
    return file.getvalue()
