"""Injected faults: what each makes of a log of writes, or of a request."""

from types import SimpleNamespace

import pytest

from conformance.media.logwrites import DISCARD, FLUSH, Media, Write
from conformance.targets.engines.kernel.faults import AWAY, EVERY, FAULTS, REACH

PLACES = SimpleNamespace(superblock=range(4096), data=range(1 << 20, 2 << 20))
BARRIER = Write(0, b"", FLUSH)


def superblock(tag: int) -> Write:
    return Write(0, bytes([tag]) * 512, 0)


def metadata(tag: int) -> Write:
    return Write(8192, bytes([tag]) * 4096, 0)


def data(tag: int, at: int = 1 << 20) -> Write:
    return Write(at, bytes([tag]) * 512, 0)


def stable(name: str, *entries: Write) -> bytes:
    media = Media(bytes(3 << 20))
    media.take(FAULTS[name](PLACES).logged(list(entries)))
    return bytes(media.stable)


def test_without_a_fault_nothing_changes() -> None:
    entries = [data(1), BARRIER, metadata(2), BARRIER, superblock(3), BARRIER]
    fault = FAULTS["none"](PLACES)
    assert fault.logged(entries) == entries
    assert fault.asked(("write", "d", "0:512")) == ("write", "d", "0:512")
    assert fault.left(b"content") == b"content"


def test_dropped_flushes_make_nothing_stable() -> None:
    assert stable("none", data(1), BARRIER)[1 << 20] == 1
    assert stable("drop-flushes", data(1), BARRIER)[1 << 20] == 0


def test_some_flushes_are_dropped() -> None:
    flags = [e.flags for e in FAULTS["drop-some-flushes"](PLACES).logged([BARRIER] * EVERY)]
    assert flags == [FLUSH] * (EVERY - 1) + [0]


def test_the_flush_after_the_superblock_is_dropped_and_no_other() -> None:
    content = stable("drop-superblock-flush", data(1), BARRIER, superblock(3), BARRIER)
    assert content[1 << 20] == 1 and content[0] == 0
    assert stable("drop-superblock-flush", superblock(3), BARRIER, BARRIER)[0] == 3


def test_late_data_is_stable_after_metadata() -> None:
    assert stable("late-data", data(1), metadata(2), BARRIER)[1 << 20] == 0
    assert stable("late-data", data(1), metadata(2), BARRIER)[8192] == 2
    assert stable("late-data", data(1), BARRIER, BARRIER)[1 << 20] == 1


def test_a_power_cut_brings_the_old_superblock_back() -> None:
    fault = FAULTS["old-superblock"](PLACES)
    fault.logged([superblock(1), superblock(2)])
    assert fault.left(bytes([2]) * 512 + b"rest") == bytes([1]) * 512 + b"rest"


@pytest.mark.parametrize("name, hit", [("lost-data", data(1)), ("lost-metadata", metadata(1))])
def test_one_write_in_a_few_is_lost(name: str, hit: Write) -> None:
    kept = FAULTS[name](PLACES).logged([hit] * EVERY + [BARRIER])
    assert kept == [hit] * (EVERY - 1) + [BARRIER]


def test_one_write_in_a_few_goes_astray() -> None:
    entries = FAULTS["misplaced"](PLACES).logged([data(1)] * EVERY)
    assert [entry.offset - (1 << 20) for entry in entries] == [0] * (EVERY - 1) + [AWAY]


def test_one_large_write_in_a_few_loses_its_second_half() -> None:
    entries = FAULTS["torn-flushed"](PLACES).logged([metadata(1)] * EVERY)
    assert [len(entry.data) for entry in entries] == [4096] * (EVERY - 1) + [2048]


def test_a_wild_discard_takes_more() -> None:
    (entry,) = FAULTS["wild-discard"](PLACES).logged([Write(1 << 20, bytes(4096), DISCARD)])
    assert entry.offset == (1 << 20) - REACH and len(entry.data) == 4096 + REACH


def test_requests_are_forgotten() -> None:
    assert FAULTS["forget-flush"](PLACES).asked(("flush", "d")) == ()
    for name, verb in (("forget-unmap", "discard"), ("forget-write", "write")):
        fault = FAULTS[name](PLACES)
        asked = [fault.asked((verb, "d", "0:512")) for _ in range(EVERY)]
        assert asked == [(verb, "d", "0:512")] * (EVERY - 1) + [()]
