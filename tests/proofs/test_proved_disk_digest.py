"""The digest of the proved disk as it stands on the device, computed again from its definition."""

import struct
import subprocess
from itertools import count, islice, pairwise
from pathlib import Path

import pytest
from scheduler_bugs import built

from support.proved_disk import PROGRAM

BLOCK, SECTOR, WORDS = 4096, 512, 512
PRIME = 2**61 - 1
FIRST_RECORD = 4  # the address of log record 1
HALF = 2**32 - 1


def drawn(number: int) -> int:
    """Return a number of splitmix64."""
    z = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


KEYS = [drawn(i) for i in range(WORDS + 2)]
POINTS = [drawn(WORDS + 2 + i) % PRIME for i in range(2)]


def nh(words: tuple[int, ...], first: int) -> int:
    """Return the sum of products of pairs of words, with the keys from `first` on."""
    keyed = [(word + key) % 2**64 for word, key in zip(words, KEYS[first:], strict=False)]
    return sum(a * b for a, b in islice(pairwise(keyed), 0, None, 2)) % 2**128


def digest(blocks: list[bytes]) -> tuple[int, ...]:
    """Return the values of the polynomial of these blocks at the two points."""
    numbers = [len(blocks)]
    for block in blocks:
        words = struct.unpack("<512Q", block)
        numbers += [nh(words, first) >> 32 * j & HALF for first in (0, 2) for j in range(4)]
    return tuple(
        sum(number * pow(point, power, PRIME) for number, power in zip(numbers[::-1], count()))
        % PRIME
        for point in POINTS
    )


def recorded(program: Path, folder: Path, data: bytes) -> tuple[list[int], set[tuple[int, ...]]]:
    """Write data to a new disk. Return the words of its log record, and the tags of the sectors."""
    subprocess.run([program, "create", folder, "--blocks", "16"], check=True)
    subprocess.run([program, "write", folder, "3"], input=data, check=True)
    file = (folder / "blocks").read_bytes()[FIRST_RECORD * BLOCK :][:BLOCK]
    sectors = [struct.unpack_from("<64Q", file, at) for at in range(0, BLOCK, SECTOR)]
    return [word for sector in sectors for word in sector[2:]], {sector[:2] for sector in sectors}


def is_as_defined(program: Path, folder: Path) -> bool:
    """Return whether the digests in a record, of its data and of the record, are as defined."""
    data = bytes(i * i % 253 for i in range(2 * BLOCK))
    words, tags = recorded(program, folder, data)
    assert words[:4] == [1, 1, 3, 3], "record 1 is a write of two blocks at LBA 3"
    places = 2
    of_data = tuple(words[4 + places + 1 :][:2])
    whole = struct.pack("<512Q", *words, *[0] * (WORDS - len(words)))
    return of_data == digest([data[:BLOCK], data[BLOCK:]]) and tags == {digest([whole])}


def test_digests_are_as_defined(tmp_path: Path) -> None:
    assert is_as_defined(PROGRAM, tmp_path / "d")


@pytest.mark.parametrize(
    ("old", "new"),
    [("pair[1] + keys[i + 3]", "pair[1] + keys[i + 1]"), ("j < 8", "j < 7")],
    ids=["a key is used twice", "a part of the hash is left out"],
)
def test_another_digest_is_found(old: str, new: str, tmp_path: Path) -> None:
    program = built(tmp_path, {"what": new, "old": old, "new": new}, "digest_blocks.c")
    assert not is_as_defined(program, tmp_path / "d")
