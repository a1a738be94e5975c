"""Self-describing blocks: every way to be wrong has its name."""

import zlib

import pytest
from google_crc32c import value as crc32c

from conformance.contract.tagged_block import SECTOR, Damage, decode, encode

SIZES = (512, 1024, 4096, 65536)


def damage(data: bytes, lba: int, trace: int = 0) -> Damage:
    """Return what is wrong with a block."""
    found = decode(data, lba, trace)
    assert isinstance(found, Damage)
    return found


@pytest.mark.parametrize("size", SIZES)
def test_round_trip(size: int) -> None:
    for tag in (0, 1, 7, 8, 16, 32, 64, 96, 2**31 - 1, 2**31):
        data = encode(tag, 3, 12, size, 99)
        assert len(data) == size and decode(data, 3, 99) == tag
    assert encode(0, 3, 12, size) == bytes(size)


def test_every_bit_counts() -> None:
    data = encode(7, 3, 12, 1024)
    for at in range(0, len(data), 7):
        damaged = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        assert isinstance(decode(damaged, 3), Damage), at


@pytest.mark.parametrize("tag", [7, 8, 16, 32, 48, 64, 80, 96])
def test_every_bit_of_a_small_block_counts(tag: int) -> None:
    data = encode(tag, 3, 12, SECTOR)
    for at in range(SECTOR):
        damaged = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        assert damage(damaged, 3).kind in ("foreign", "garbage"), at


def test_some_blocks_compress_to_a_few_bytes_more_or_less_than_whole_sectors() -> None:
    """Who has room for as many bytes as a sector has, or a few more, cuts such a block off."""
    lengths = [len(zlib.compress(encode(tag, tag % 64, tag, 1024), 1)) for tag in range(1, 6000)]
    for off in (range(-6, 0), range(1, 7)):
        assert sum(length - SECTOR in off for length in lengths) >= 3, off
    assert len({*lengths}) > 300


@pytest.mark.parametrize("size", SIZES)
def test_sparse_blocks_look_like_zeroes(size: int) -> None:
    """But for their first bytes, for their last ones, or for some inside their last sector."""
    begin, one, other = (encode(tag, 3, 12, size) for tag in (16, 48, 80))
    assert encode(48, 9, 99, size) == one and decode(one, 9) == 48
    assert any(begin[:48]) and not any(begin[48:]) and decode(begin, 4) == 16
    assert any(one[-48:]) and not any(one[:-48])
    assert not any(other[: size - SECTOR + 64]) and not any(other[-64:]) and any(other)
    for data in (begin, one, other):
        assert sum(map(bool, data)) < 64
    old = encode(5, 3, 4, size)
    if size > SECTOR:
        found = damage(old[:SECTOR] + one[SECTOR:], 3)
        assert found.kind == "torn" and "tag 48" in found.detail and "tag 5" in found.detail
        assert damage(one[: size - SECTOR] + old[size - SECTOR :], 3).kind == "torn"
    assert damage(encode(16, 3, 12, size, trace=1), 3, trace=2).kind == "foreign"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tag, first", [(96, 0), (32, -8), (64, 104 - SECTOR)])
def test_tiny_blocks_have_eight_bytes(size: int, tag: int, first: int) -> None:
    """Who leaves the last 16 bytes out takes one for zeroes."""
    data = encode(tag, 3, 12, size)
    at = first % size
    assert any(data[at : at + 8]) and not any(data[:at] + data[at + 8 :])
    assert encode(tag, 9, 99, size) == data and decode(data, 9) == tag
    assert damage(encode(tag, 3, 12, size, trace=1), 3, trace=2).kind == "foreign"
    if size > SECTOR:
        old, cut = encode(5, 3, 4, size), SECTOR if first == 0 else size - SECTOR
        torn = data[:cut] + old[cut:] if first == 0 else old[:cut] + data[cut:]
        found = damage(torn, 3)
        assert found.kind == "torn" and f"tag {tag} " in found.detail and "tag 5" in found.detail


@pytest.mark.parametrize("size", SIZES[1:])
def test_torn(size: int) -> None:
    new, old = encode(7, 3, 12, size), encode(5, 3, 4, size)
    half = size // 2
    found = damage(new[:half] + old[half:], 3)
    assert found.kind == "torn" and "tag 7" in found.detail and "tag 5" in found.detail
    assert damage(new[:half] + bytes(half), 3).kind == "torn"
    assert damage(bytes(half) + new[half:], 3).kind == "torn"


def test_torn_says_which_sectors() -> None:
    new, old = encode(7, 3, 12, 4096), encode(5, 3, 4, 4096)
    found = damage(new[: 4 * SECTOR] + old[4 * SECTOR :], 3)
    assert found.detail == "sectors 0-3 tag 7 (operation 12), 4-7 tag 5 (operation 4)"


def test_misplaced() -> None:
    found = damage(encode(7, 4, 12, 1024), 3)
    assert found.kind == "misplaced" and "LBA 4" in found.detail


def test_sectors_in_the_wrong_order() -> None:
    data = encode(7, 3, 12, 1024)
    found = decode(data[SECTOR:] + data[:SECTOR], 3)
    assert isinstance(found, Damage) and "another place" in found.detail


def test_a_smaller_block_size_is_not_the_same_block() -> None:
    assert isinstance(decode(encode(7, 3, 12, 512) * 2, 3), Damage)


def test_foreign_and_garbage() -> None:
    assert damage(b"\xaa" * 1024, 3).kind == "foreign"
    assert damage(encode(7, 3, 12, 1024, trace=1), 3, trace=2).kind == "foreign"
    assert damage(encode(7, 3, 12, 1024)[:SECTOR] + b"\xaa" * SECTOR, 3).kind == "garbage"
    assert damage(bytes(SECTOR) + b"\xaa" * SECTOR, 3).kind == "foreign"


def test_no_checksum_of_an_engine_takes_one_block_for_another() -> None:
    """A CRC at the end of data makes the CRC of the whole a constant."""
    blocks = [
        encode(tag, lba, 1, size, 7) for size in (512, 4096) for tag in (1, 2) for lba in (0, 3)
    ]
    for checksum in (crc32c, zlib.crc32, zlib.adler32):
        assert len({checksum(data) for data in blocks}) == len(blocks)
