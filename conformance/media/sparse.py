"""The content of a disk that is mostly zeroes, as one line of text.

The text is base 85 (`base64.b85encode`) of a Zstandard frame. The frame has, for each page of 4 KiB
that is not all zeroes, its number in 4 bytes (little endian) and its bytes.
"""

import base64
import struct

import zstandard

PAGE = 4096  # bytes
ZEROES = bytes(PAGE)
NUMBER = struct.Struct("<I")


class BadContent(Exception):
    """The text is not the content of a disk. The message is one line."""


def pack(content: bytes) -> str:
    """Return the text for the content."""
    parts = []
    for at in range(0, len(content), PAGE):
        page = content[at : at + PAGE].ljust(PAGE, b"\0")
        if page != ZEROES:
            parts += [NUMBER.pack(at // PAGE), page]
    return base64.b85encode(zstandard.compress(b"".join(parts), 3)).decode()


def unpack(text: str, size: int) -> bytes:
    """Return the content, `size` bytes. Raises BadContent."""
    try:
        data = zstandard.decompress(base64.b85decode(text), max_output_size=2 * size + PAGE)
    except (ValueError, zstandard.ZstdError) as error:
        raise BadContent(f"not the content of a disk: {error}") from None
    content = bytearray(size)
    step = NUMBER.size + PAGE
    if len(data) % step:
        raise BadContent(f"not the content of a disk: {len(data)} bytes are no pages")
    for at in range(0, len(data), step):
        place = NUMBER.unpack_from(data, at)[0] * PAGE
        if place >= size:
            raise BadContent(f"a page at byte {place} is outside a disk of {size} bytes")
        page = data[at + NUMBER.size : at + step]
        content[place : place + PAGE] = page[: size - place]
    return bytes(content)
