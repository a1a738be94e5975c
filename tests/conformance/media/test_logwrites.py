"""Logs of writes: what is read from them, and what a power cut may leave."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.media.logwrites import (
    DISCARD,
    ENTRY,
    FLUSH,
    FUA,
    MAGIC,
    SECTOR,
    BadLog,
    Media,
    Write,
    read,
)
from conformance.media.recorded import Recorded


def sector(letter: str) -> bytes:
    return letter.encode() * SECTOR


def entry(at: int, data: bytes = b"", flags: int = 0, sectors: int | None = None) -> bytes:
    head = ENTRY.pack(at, len(data) // SECTOR if sectors is None else sectors, flags, 0)
    return head.ljust(SECTOR, b"\0") + data


SUPERBLOCK = struct.pack("<QQQI", MAGIC, 1, 3, SECTOR).ljust(SECTOR, b"\0")


def test_a_log_is_read_from_where_it_was_left(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(SUPERBLOCK + entry(4, sector("a") + sector("b")) + entry(0, flags=FLUSH))
    found, end = read(log)
    assert found == [Write(4 * SECTOR, sector("a") + sector("b"), 0), Write(0, b"", FLUSH)]
    assert not found[1].moves
    with log.open("ab") as more:
        more.write(entry(1, flags=DISCARD, sectors=2) + entry(3, sector("c"), FUA))
    assert read(log, end)[0] == [
        Write(SECTOR, bytes(2 * SECTOR), DISCARD),
        Write(3 * SECTOR, sector("c"), FUA),
    ]


def test_zeroes_at_the_end_may_be_a_hole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(SUPERBLOCK + entry(0, sectors=2))
    assert read(log)[0] == [Write(0, bytes(2 * SECTOR), 0)]


def test_the_superblock_comes_with_the_first_flush(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(bytes(SECTOR) + entry(0, sector("a")))
    assert len(read(log)[0]) == 1
    log.write_bytes(sector("x") + entry(0, sector("a")))
    with pytest.raises(BadLog, match="no log of writes"):
        read(log)


def outcomes(*writes: Write, seeds: int = 400) -> set[str]:
    """All that power cuts make of these writes to three sectors of dots."""
    found = set()
    for seed in range(seeds):
        media = Media(sector(".") * 3)
        media.take(writes)
        found.add(media.cut_power(random.Random(seed))[::SECTOR].decode())
    return found


def test_what_no_flush_covers_may_survive_or_not() -> None:
    a, b, flush = Write(0, sector("a"), 0), Write(SECTOR, sector("b"), 0), Write(0, b"", FLUSH)
    assert outcomes(a, b) == {"...", "a..", ".b.", "ab."}
    assert outcomes(a, flush, b) == {"a..", "ab."}
    assert outcomes(a, b, flush) == {"ab."}


def test_a_write_tears_at_sectors() -> None:
    assert outcomes(Write(0, sector("a") * 3, 0)) == {
        x + y + z for x in ".a" for y in ".a" for z in ".a"
    }


def test_fua_makes_itself_durable_and_nothing_else() -> None:
    a, b = Write(0, sector("a"), 0), Write(SECTOR, sector("b"), FUA)
    assert outcomes(a, b) == {".b.", "ab."}
    assert outcomes(Write(0, sector("a"), 0), Write(0, sector("b"), FUA)) == {"b.."}, (
        "nothing older on top of it"
    )


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from("abc"), st.sampled_from([0, 0, 0, FLUSH, FUA])
        ),
        max_size=12,
    ),
    st.integers(0, 2**32),
)
def test_every_sector_holds_what_it_held_at_the_last_flush_or_was_given_since(
    history: list[tuple[int, str, int]], seed: int
) -> None:
    media, may = Media(sector(".") * 3), [{"."}, {"."}, {"."}]
    now = list("...")
    for at, letter, flags in history:
        if flags == FLUSH:
            media.take([Write(0, b"", FLUSH)])
            may = [{letter} for letter in now]
        else:
            media.take([Write(at * SECTOR, sector(letter), flags)])
            now[at] = letter
            may[at] = {letter} if flags == FUA else may[at] | {letter}
    left = media.cut_power(random.Random(seed))[::SECTOR].decode()
    assert all(letter in allowed for letter, allowed in zip(left, may, strict=True))


def test_the_power_fails_at_the_nth_write(tmp_path: Path) -> None:
    disk, log = tmp_path / "disk", tmp_path / "log"
    disk.write_bytes(b"")
    log.write_bytes(b"")
    recorded = Recorded(disk, log, 3 * SECTOR)
    recorded.lay(sector(".") * 3)
    with log.open("r+b") as more:
        more.seek(SECTOR)
        more.write(
            entry(0, sector("a"))
            + entry(0, flags=FLUSH)
            + entry(1, sector("b"))
            + entry(2, sector("c"))
        )
    assert recorded.cut(2)
    recorded.lay(recorded.survives(random.Random(0)))
    assert (
        disk.read_bytes()[::SECTOR].decode() in {"a..", "ab."} and disk.stat().st_size == 3 * SECTOR
    )
    assert not recorded.cut(1), "what was logged before it was laid is forgotten"
