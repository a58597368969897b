"""Small pieces of a file, joined into ones that are worth a write."""

from collections.abc import Iterable, Iterator

PIECE_BYTES = 256 * 1024


def bunched(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of about `PIECE_BYTES`."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
