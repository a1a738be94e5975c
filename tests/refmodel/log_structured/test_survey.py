"""The survey: opening costs the same at every size, and what is in use is found out later."""

import dataclasses
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk, open_disk
from refmodel.bench.scale.table import Bench, Cost
from refmodel.core.errors import DataLost, NoSpace
from refmodel.journal import checkpoint as checkpoints
from refmodel.log_structured import state as states
from refmodel.log_structured import survey as surveys
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks import segments as segment_tables
from refmodel.log_structured.disk import REPLAYED
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.maps.free_pages import FreePages
from refmodel.log_structured.maps.page_marking import READ_AHEAD
from refmodel.log_structured.scrub import scrub
from support.array_disks import TrackedDisk
from support.disks import block
from support.histories import History

BLOCKS = 256
Make = Callable[..., LogStructuredDisk]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A survey in the smallest steps, of which hardly any is done while a disk is opened."""
    monkeypatch.setattr(states, "READ_AHEAD", 2)
    monkeypatch.setattr(surveys, "SWEPT", 3)
    monkeypatch.setattr(surveys, "SWEPT_AT_OPENING", 0)
    monkeypatch.setattr(surveys, "LEAST_FREE", -(1 << 30))
    monkeypatch.setattr(segment_tables, "READ_AT_OPENING", 0)
    monkeypatch.setattr(segment_tables, "LEARNED", 2)


@pytest.fixture
def worked(make: Make, folder: Path, slow: None) -> Iterator[LogStructuredDisk]:
    """A disk that was just opened, with snapshots and a view that is half reclaimed."""
    disk = make(BLOCKS)
    choose = random.Random(3)
    for name in "abc":
        for _ in range(60):
            disk.write(choose.randrange(BLOCKS), block(choose.randrange(1000)))
        disk.snapshot(name)
    disk.unmap(0, 64)
    disk.checkpoint()
    disk.delete("b")
    for _ in range(6):
        disk.state.reclaimer.reclaim()
    disk.checkpoint()
    assert disk.state.views.deleted[0].cursor
    disk.close()
    with closing(open_disk(folder, sync=False)) as opened:
        yield opened


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("seed", range(1, 13))
def test_a_random_history_during_the_survey_is_what_the_contract_allows(
    folder: Path, seed: int
) -> None:
    history = History(folder, 2000 + seed)
    surveyed = 0
    for _ in range(120):
        history.step()
        surveyed += not history.disk.state.survey.is_done
    assert surveyed > 5
    assert history.read_all() == history.content()
    history.disk.settle()
    assert history.disk.state.survey.is_done
    assert scrub(history.disk).clean and history.read_all() == history.content()
    assert audit(history.disk.state) == []
    history.disk.abandon()


def opened(folder: Path, blocks: int) -> tuple[Cost, Cost, LogStructuredDisk]:
    """Fill a disk; return what it costs to open it after a close, and after a crash."""
    bench = Bench(folder / str(blocks), plan(blocks), None)
    bench.age(0, cleaned=False)
    closed = bench.reopen(cleanly=True)
    return closed, bench.reopen(cleanly=False), bench.disk


def test_opening_reads_as_much_at_every_size(tmp_path: Path) -> None:
    """After a crash, too, if nothing is in the log behind the checkpoint."""
    (small, small_cut, one), (large, large_cut, two) = (
        opened(tmp_path, blocks) for blocks in (1 << 14, 1 << 17)
    )
    assert small.ios == large.ios == small_cut.ios == large_cut.ios
    assert small.nodes == large.nodes == READ_AHEAD
    assert two.state.pages.used_count > 7 * one.state.pages.used_count
    two.state.survey.finish()
    assert audit(two.state) == []
    for disk in (one, two):
        disk.abandon()


def test_the_survey_ends_after_some_operations(worked: LogStructuredDisk) -> None:
    """Each does a step. What was free in the old part of the disk is used again."""
    pages = worked.state.pages
    end, steps = pages.unused.first_unused, 0
    while not worked.state.survey.is_done:
        worked.write(steps % BLOCKS, block(steps))
        steps += 1
        assert worked.state.survey.steps == steps and audit(worked.state) == []
    assert 10 < steps < 1000
    assert pages.unused.first_unused >= end and not pages.unused.unknown
    worked.checkpoint()
    low = [page for page in range(1, end) if page in pages.unused]
    assert low and pages.unused.allocate() == low[0]
    pages.unused.release(low[0])


def test_idle_moments_go_on_with_the_survey(worked: LogStructuredDisk, folder: Path) -> None:
    worked.settle()
    assert worked.state.survey.is_done and not worked.background()
    worked.checkpoint()
    worked.close()
    with closing(open_disk(folder, sync=False)) as disk:
        assert not disk.state.survey.is_done
        while disk.background():
            pass
        assert disk.state.survey.is_done and audit(disk.state) == []


def test_too_few_pages_end_the_survey(
    worked: LogStructuredDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = worked.state.pages.unused
    monkeypatch.setattr(surveys, "LEAST_FREE", unused.count())
    worked.write(0, block(1))
    assert worked.state.survey.is_done and audit(worked.state) == []


def test_too_few_segments_are_looked_for(worked: LogStructuredDisk) -> None:
    """One after another, as far as it takes."""
    segments = worked.state.segments
    free = segments.free_count()
    found = [segments.open() for _ in range(free)]
    assert segments.free_count() == 0 and sorted(set(found)) == sorted(found)
    assert not segments.sealed.keys() & found
    for segment in found:
        segments.add_free(segment)
    assert segments.free_count() == free and audit(worked.state) == []


def test_a_checkpoint_that_does_not_say_what_was_never_used_is_read(
    worked: LogStructuredDisk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As programs before wrote it: all is found out while the disk is opened."""
    content, used = worked.read(0, BLOCKS), dict(+worked.state.pages.used)
    worked.abandon()
    read = checkpoints.decode

    def as_before(page: bytes) -> checkpoints.Checkpoint | None:
        slot = read(page)
        if slot is None:
            return None
        unknown = dict.fromkeys(("first_unused_page", "first_unused_segment", "sealed", "live"), 0)
        none: dict[str, Any] = {**unknown, "pages": (0,) * checkpoints.KINDS}
        return dataclasses.replace(slot, **none)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "decode", as_before)
        patch.setattr(surveys, "SWEPT_AT_OPENING", 1 << 20)
        disk = open_disk(folder, sync=False)
    assert disk.state.survey.is_done and dict(+disk.state.pages.used) == used
    assert disk.read(0, BLOCKS) == content and audit(disk.state) == []
    disk.abandon()


def test_below_a_page_that_is_lost_nothing_is_given_out(
    worked: LogStructuredDisk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be back at the next opening."""
    leg, content, lost = worked.state.performance, worked.read(0, BLOCKS), []
    read = leg.read

    def read_all_but_the_first(offset: int, *arguments: Any) -> bytes:
        lost.append(offset)
        if offset == lost[0]:
            raise DataLost("no copy is good")
        return read(offset, *arguments)

    worked.state.segments.learn_all()
    with monkeypatch.context() as patch:
        patch.setattr(leg, "read", read_all_but_the_first)
        worked.state.survey.finish()
    assert len(worked.state.pages.damaged) == 1 and worked.state.survey.is_done
    for number in range(200):
        worked.write(number % BLOCKS, block(number))
    worked.checkpoint()
    worked.abandon()
    with closing(open_disk(folder, sync=False)) as disk:
        expected = b"".join(block(number) for number in range(200)) + content[200 * 512 :]
        assert disk.read(0, BLOCKS) == expected
        disk.state.survey.finish()
        assert audit(disk.state) == []


def test_what_is_freed_while_nobody_knows_is_found_when_all_is_marked() -> None:
    unused = FreePages(100)
    unused.load(10)
    assert unused.count() == 90 and unused.allocate() == 10
    unused.release(10)
    unused.release(7)
    assert unused.allocate() == 10 and 7 not in unused
    unused.learn(6, lambda page: page in (2, 3))
    assert [unused.allocate() for _ in range(4)] == [1, 4, 5, 6]
    unused.release(7)
    unused.release(2)
    assert unused.allocate() == 2 and 7 not in unused
    unused.learn(6, lambda page: page == 9)
    assert [unused.allocate() for _ in range(3)] == [7, 8, 11]


@pytest.mark.parametrize("refused", [False, True])
def test_a_clean_close_leaves_little_to_replay(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """It takes a checkpoint; if it cannot, the log has everything."""
    disk = make(BLOCKS, fanout=0, log_bytes=1 << 20)
    for number in range(200):
        disk.write(number, block(number))
    used, number = disk.state.log.used(), disk.state.checkpoint_number

    def refuse() -> None:
        raise NoSpace("no segment is free")

    if refused:
        monkeypatch.setattr(disk.checkpoints, "run", refuse)
    disk.close()
    with closing(open_disk(folder, sync=False)) as again:
        assert again.state.checkpoint_number == number + (not refused)
        assert (
            again.state.log.used() == used if refused else again.state.log.used() <= REPLAYED < used
        )
        assert again.read(0, 200) == b"".join(map(block, range(200)))


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("layout", ["mirror", "raid6-4+2"])
def test_what_a_device_lacks_is_found_out_once_enough_devices_are_there(
    folder: Path, layout: str
) -> None:
    """While no device has the maps, pages are not damaged, and one that returns lacks more than
    is known."""
    one = TrackedDisk(folder, layout, fanout=4)
    one.fill()
    one.disk.checkpoint()
    away = range(one.disk.geometry.m)
    for device in away:
        one.disk.fail(device)
    one.fill()
    one.disk.checkpoint()
    one.reopen()
    assert not one.disk.state.survey.is_done
    others = range(len(away), len(one.states()))
    for device in others:
        one.disk.fail(device)
    for device in away:
        one.disk.return_(device)
        assert one.states()[device] == "stale"
    assert not one.disk.resync.step()
    for device in others:
        one.disk.return_(device)
    one.disk.settle()
    assert not one.disk.state.pages.damaged and scrub(one.disk).clean and one.is_right()
    for device in others[: len(away)]:
        one.disk.fail(device)
    one.reopen()
    assert one.is_right()
    one.disk.abandon()
