"""Self-describing blocks: the bytes of a wrong read say where its data came from.

Each sector of 512 bytes says which block it is part of:

    magic 8 | trace 8 | tag 8 | LBA 8 | operation 8 | sector 2 | sectors 2 | noise | text
    | checksum of all before 4

in little-endian order. Tag 0 is all zeroes. The text says the same for people who look at a hex
dump. The noise does not compress; how long it is follows from the tag (TEXTURES), so that
blocks compress to several lengths, and some blocks to any length: also to a few bytes more or less
than a whole number of sectors. A tag that is a multiple of ALIKE is the same data wherever
and whenever it is written: its LBA and operation are 0. Every second of these is sparse: all zeroes
but for a header and its checksum, at the beginning of the block, at its end, or inside its last
sector. So many sparse blocks begin alike and end differently, and whoever looks only at some bytes
takes them for zeroes. Every second of the sparse ones is tiny: all zeroes but for 8 bytes there,
the tag and a checksum of it and of the trace.

The checksum is not a CRC: data with its own CRC behind it has the same CRC whatever the data
is, so an engine that keeps that CRC of each block would take any block of this kit for any
other.
"""

import struct
from functools import lru_cache
from hashlib import blake2b, shake_128
from itertools import groupby
from typing import NamedTuple

SECTOR = 512  # bytes
MAGIC = b"cnfBLOCK"
PART = b" operation "  # of the text
HEADER = struct.Struct("<8sQQQQHH")
CHECKSUM = 4  # bytes
TINY = struct.Struct("<I4s")
ZEROES = bytes(SECTOR)
ALIKE = 8
INSIDE = 104  # bytes from the beginning of the last sector to the header of some sparse blocks
ROOM = SECTOR - HEADER.size - CHECKSUM  # bytes of noise and text in a sector
ANY = -1  # bytes of noise: any number of them in a block
TEXTURES = (0, ROOM // 4, ROOM // 2, ROOM, ANY, ANY)  # bytes of noise in a sector
STRIDE = 37  # bytes of noise that a block of any number has more than that of the tag before


class Damage(NamedTuple):
    """The reason why a block is not one that was written here: torn, misplaced, foreign or garbage,
    and what it holds.

    Torn blocks mix sound sectors of several writes; garbage has sectors that are of none.
    """

    kind: str
    detail: str


class _Sector(NamedTuple):
    """The header of a sound sector."""

    trace: int
    tag: int
    lba: int
    op: int
    number: int
    sectors: int


@lru_cache(maxsize=4096)
def encode(tag: int, lba: int, op: int, block_size: int, trace: int = 0) -> bytes:
    """Return the block `tag` as operation number `op` of the trace numbered `trace` writes it to
    `lba`.

    `block_size` is a multiple of 512 bytes."""
    if tag == 0:
        return bytes(block_size)
    if tag % ALIKE == 0:
        lba = op = 0
    sectors = block_size // SECTOR
    if is_sparse(tag):
        if _is_tiny(tag):
            content = _tiny(tag, trace)
        else:
            header = HEADER.pack(MAGIC, trace, tag, 0, 0, sectors - 1, sectors)
            content = header + _checksum(header)
        start = bytes(_places(block_size, len(content))[tag // (4 * ALIKE) % 3])
        return (start + content).ljust(block_size, b"\0")
    rough = TEXTURES[(tag + tag // ALIKE) % len(TEXTURES)]
    length = tag * STRIDE % (sectors * ROOM + 1) if rough == ANY else sectors * rough
    noise = shake_128(b"%d" % tag).digest(length)
    text = b" tag %d LBA %d%b%d " % (tag, lba, PART, op)
    text *= ROOM // len(text) + 1
    parts: list[bytes] = []
    for index in range(sectors):
        part = noise[index * length // sectors : (index + 1) * length // sectors]
        body = (
            HEADER.pack(MAGIC, trace, tag, lba, op, index, sectors)
            + part
            + text[: ROOM - len(part)]
        )
        parts += body, _checksum(body)
    return b"".join(parts)


def is_sparse(tag: int) -> bool:
    """Return whether nearly all bytes of the block are zeroes."""
    return tag > 0 and tag % (2 * ALIKE) == 0


def _is_tiny(tag: int) -> bool:
    """Return whether all but 8 bytes of the block are zeroes."""
    return tag > 0 and tag % (4 * ALIKE) == 0


def _tiny(tag: int, trace: int) -> bytes:
    """Return the bytes of a tiny block that are not zeroes."""
    return TINY.pack(tag, _checksum(b"%d %d" % (tag, trace)))


def _places(block_size: int, length: int) -> tuple[int, int, int]:
    """Return where the `length` bytes of a sparse block that are not zeroes may begin."""
    return 0, block_size - length, block_size - SECTOR + INSIDE


def _found(data: bytes, trace: int) -> int | None:
    """Return the tag of the sparse block that this is, None if it is none."""
    for at in _places(len(data), HEADER.size + CHECKSUM):
        if data.startswith(MAGIC, at):
            tag = HEADER.unpack_from(data, at)[2]
            if is_sparse(tag) and data == encode(tag, 0, 0, len(data), trace):
                return int(tag)
    for at in _places(len(data), TINY.size):
        tag = TINY.unpack_from(data, at)[0]
        if _is_tiny(tag) and data == encode(tag, 0, 0, len(data), trace):
            return int(tag)
    return None


def decode(data: bytes, lba: int, trace: int = 0) -> int | Damage:
    """Return the tag of a block read at `lba`, or what is wrong with it.

    `data` is one whole block.
    """
    if data.startswith(MAGIC):
        _, _, tag, _, op, _, _ = HEADER.unpack_from(data)
        if data == encode(tag, lba, op, len(data), trace):
            return int(tag)
    elif data == bytes(len(data)):
        return 0
    tag = _found(data, trace)
    return _diagnosis(data, lba, trace) if tag is None else tag


def _diagnosis(data: bytes, lba: int, trace: int) -> Damage:
    count = len(data) // SECTOR
    sectors = [_sector(data[i * SECTOR : (i + 1) * SECTOR], i, trace) for i in range(count)]
    sound = [sector for sector in sectors if isinstance(sector, _Sector)]
    detail = _by_sector(sectors, lba, trace)
    unsound = [sector for sector in sectors if isinstance(sector, str) and sector != "zeroes"]
    if not sound and set(unsound) == {"garbage"}:
        return Damage("foreign", "no sector of it was written by this kit")
    if any(sector.trace != trace for sector in sound):
        return Damage("foreign", "left over from another trace: " + detail)
    if unsound:
        return Damage("garbage", detail)
    if len(sound) == count and len({(s.tag, s.lba, s.op, s.sectors) for s in sound}) == 1:
        return Damage("misplaced", detail)
    return Damage("torn", detail)


def _sector(data: bytes, number: int, trace: int) -> _Sector | str:
    if data == ZEROES:
        return "zeroes"
    places = _places(SECTOR, HEADER.size + CHECKSUM)
    at = next((at for at in places if data.startswith(MAGIC, at)), None)
    if at is None:
        tiny = _found(data, trace)  # of a larger block, perhaps: this sector looks the same
        if tiny is not None:
            return _Sector(trace, tiny, 0, 0, number, 1)
        return "damaged (it has a part of a block of this kit)" if PART in data else "garbage"
    _, *fields = HEADER.unpack_from(data, at)
    end = at + HEADER.size if is_sparse(fields[1]) else SECTOR - CHECKSUM
    others = data[:at] + data[end + CHECKSUM :]
    if data[end : end + CHECKSUM] != _checksum(data[at:end]) or any(others):
        return f"damaged (it says tag {fields[1]}, its checksum is wrong)"
    return _Sector(*fields)


def _by_sector(sectors: list[_Sector | str], lba: int, trace: int) -> str:
    """Return what the sectors hold, in runs: `sectors 0-3 tag 7, 4-7 tag 5`."""
    described = [_described(sector, at, lba, trace) for at, sector in enumerate(sectors)]
    runs, at = [], 0
    for text, run in groupby(described):
        last = at + len(list(run)) - 1
        runs.append(f"{at}-{last} {text}" if last > at else f"{at} {text}")
        at = last + 1
    return "sectors " + ", ".join(runs) if len(sectors) > 1 else described[0]


def _described(sector: _Sector | str, at: int, lba: int, trace: int) -> str:
    if isinstance(sector, str):
        return sector
    text = f"tag {sector.tag} (operation {sector.op})"
    if sector.trace != trace:
        text += " of another trace"
    if sector.lba != lba and sector.tag % ALIKE:
        text += f" of LBA {sector.lba}"
    if sector.number != at:
        text += " from another place in the block"
    return text


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=CHECKSUM).digest()
