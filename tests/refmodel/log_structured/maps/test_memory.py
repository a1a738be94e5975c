"""Maps that do not fit in memory: what is forgotten, what is loaded again, and how often."""

import gc
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from refmodel import LogStructuredDisk
from refmodel.bench.scale.cache_model import expected_misses, node_rates
from refmodel.core.errors import DataLost
from refmodel.log_structured import state
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks import chunk_store
from refmodel.log_structured.geometry import plan
from refmodel.log_structured.maps import logical_map
from refmodel.log_structured.maps.cached_tree import KNOWN_BYTES, MOST_KNOWN
from refmodel.log_structured.maps.page_store import LEAST_CLEAN, MISS, NODE_BYTES
from support.disks import block

BLOCKS = 8192
NODES = 900  # of some 2,700
FILLED = 64  # blocks in each write
WIDE = 1 << 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk that is fully mapped."""
    path = tmp_path_factory.mktemp("memory") / "disk"
    LogStructuredDisk.create(path, plan(BLOCKS, block_bytes=512, fanout=8), sync=False)
    with closing(LogStructuredDisk.open(path, sync=False)) as disk:
        for lba in range(0, BLOCKS, FILLED):
            disk.write(lba, b"".join(block(tag) for tag in range(lba, lba + FILLED)))
        disk.checkpoint()
    return path


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A disk that is fully mapped, whose nodes have as many entries as fit."""
    path = tmp_path / "wide"
    LogStructuredDisk.create(path, plan(WIDE, block_bytes=512), sync=False)
    with closing(LogStructuredDisk.open(path, sync=False)) as disk:
        for lba in range(0, WIDE, 4096):
            disk.write(lba, bytes(4096 * 512))
        disk.checkpoint()
    return path


@pytest.fixture
def disk(folder: Path) -> Iterator[LogStructuredDisk]:
    """The same disk, with memory for NODES nodes."""
    with closing(LogStructuredDisk.open(folder, sync=False, memory=NODES * NODE_BYTES)) as disk:
        yield disk


def reads(disk: LogStructuredDisk, cause: str) -> int:
    """Return the number of device reads of a cause."""
    return sum(meter[cause].reads for meter in disk.meters.values())


def lose(disk: LogStructuredDisk, page: int, patch: pytest.MonkeyPatch) -> None:
    """Let no component give a page."""
    leg, read = disk.state.performance, disk.state.performance.read

    def read_but_one(offset: int, *arguments: Any) -> bytes:
        if offset == disk.state.pages.offset(page):
            raise DataLost("no copy is good")
        return read(offset, *arguments)

    patch.setattr(leg, "read", read_but_one)


def uniform() -> list[float]:
    return [1 / BLOCKS] * BLOCKS


def zipf() -> list[float]:
    ranked = [1 / (rank + 1) ** 0.99 for rank in range(BLOCKS)]
    random.Random(3).shuffle(ranked)
    return [weight / sum(ranked) for weight in ranked]


@pytest.mark.parametrize("weights", [uniform(), zipf()], ids=["uniform", "zipf"])
def test_the_model_says_how_many_nodes_are_loaded(
    disk: LogStructuredDisk, weights: list[float]
) -> None:
    live, middle = disk.state.views.live_map, disk.state.chunks.middle
    by_mba = {mba: weights[lba] for lba, mba in live.items()}
    rates = node_rates(live, weights.__getitem__) + node_rates(middle, by_mba.__getitem__)
    expected = expected_misses(rates, NODES)
    assert 0.5 < expected < 5
    wanted = random.Random(5).choices(range(BLOCKS), weights, k=16000)
    for lba in wanted[:4000]:
        disk.read(lba)
    before, loaded = reads(disk, MISS), disk.state.pages.loaded
    for lba in wanted[4000:]:
        assert disk.read(lba)[:8] == lba.to_bytes(8, "little")
        assert len(disk.state.pages.nodes) <= NODES
    misses = reads(disk, MISS) - before
    assert misses == disk.state.pages.loaded - loaded
    assert misses / 12000 == pytest.approx(expected, rel=0.05)


def test_with_enough_memory_no_node_is_loaded_twice(folder: Path) -> None:
    with closing(LogStructuredDisk.open(folder, sync=False)) as disk:
        for lba in range(BLOCKS):
            disk.read(lba)
        pages, missed = disk.state.pages, reads(disk, MISS)
        assert missed and pages.loaded == len(pages.nodes) and not pages.evicted
        for lba in range(0, BLOCKS, 7):
            disk.read(lba)
        assert reads(disk, MISS) == missed


def test_live_remembers_blocks_only_in_memory_that_the_nodes_leave(wide: Path) -> None:
    with closing(LogStructuredDisk.open(wide, sync=False)) as disk:
        pages, live = disk.state.pages, disk.state.views.live_map
        assert disk.read(5) and list(live.remembered()) == [(5, live.get(5))]
        column = -(-pages.column_bytes // NODE_BYTES)
        for left, remembered in ((column, 2), (column - 1, 0), (column, 1)):
            disk.limit_memory((pages.used_count + LEAST_CLEAN + left) * NODE_BYTES)
            assert disk.read(6) and len(list(live.remembered())) == remembered


def test_the_middle_map_remembers_entries_only_in_memory_that_nodes_and_column_leave(
    folder: Path,
) -> None:
    with closing(LogStructuredDisk.open(folder, sync=False)) as disk:
        pages, middle = disk.state.pages, disk.state.chunks.middle
        least = pages.used_count + LEAST_CLEAN + -(-pages.column_bytes // NODE_BYTES) + 1
        entries = KNOWN_BYTES * MOST_KNOWN // NODE_BYTES
        for left, remembers in ((entries, True), (entries - 1, False), (entries, True)):
            disk.limit_memory((least + left) * NODE_BYTES)
            middle._known.clear()
            assert disk.read(7) and len(middle._known) == remembers


def test_opening_reads_few_nodes_and_the_survey_finds_the_others(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no leaves, and knows in the end what it knows when all have been read."""
    monkeypatch.setattr(state, "READ_AHEAD", 8)
    with closing(LogStructuredDisk.open(wide, sync=False)) as disk:
        pages, survey = disk.state.pages, disk.state.survey
        assert pages.loaded == 8 and len(pages.in_use) < 10 and not survey.is_done
        used = dict(+pages.used)
        survey.finish()
        assert survey.is_done and 5 < survey.steps < 30
        assert pages.loaded < 8 + 30 and len(pages.in_use) > 700
        few = dict(+pages.used), sorted(pages.in_use), pages.free_count()
        assert few[0] == used and not audit(disk.state)
    monkeypatch.setattr(state, "READ_AHEAD", 1 << 20)
    with closing(LogStructuredDisk.open(wide, sync=False)) as disk:
        pages = disk.state.pages
        assert pages.has_all() and disk.state.survey.is_done
        assert few == (dict(+pages.used), sorted(pages.in_use), pages.free_count())
        births = dict(pages.in_use)
    monkeypatch.setattr(state, "READ_AHEAD", 8)
    with closing(LogStructuredDisk.open(wide, sync=False)) as disk:
        disk.state.survey.learn_births()
        assert dict(disk.state.pages.in_use) == births and not disk.state.pages.damaged


def test_changes_begin_a_checkpoint_before_they_fill_the_memory(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logical_map, "MOST_RECENT", 64)
    monkeypatch.setattr(chunk_store, "MOST_DROPPED", 64)
    choose, few = random.Random(7), 400  # of some 850 nodes
    with closing(LogStructuredDisk.open(wide, sync=False, memory=few * NODE_BYTES)) as disk:
        before, most = disk.state.checkpoint_number, 0
        for _ in range(2000):
            disk.write(choose.randrange(WIDE), block(1))
            most = max(most, len(disk.state.pages.nodes))
        assert disk.state.checkpoint_number > before + 2
        assert disk.state.log.used() < disk.state.log.size / 16
        assert most <= 1.25 * few


def test_large_writes_keep_to_the_memory(tmp_path: Path) -> None:
    """What waits is merged as fast as they add to it, so the checkpoint gets to its nodes."""
    path, few, most = tmp_path / "filled", 400, 0  # of some 850 nodes
    LogStructuredDisk.create(path, plan(WIDE, block_bytes=512), sync=False)
    with closing(LogStructuredDisk.open(path, sync=False, memory=few * NODE_BYTES)) as disk:
        for lba in range(0, WIDE, 512):
            disk.write(lba, bytes(512 * 512))
            most = max(most, len(disk.state.pages.nodes))
        assert disk.state.checkpoint_number >= 2 and most <= few


def test_writes_of_many_places_keep_to_the_memory(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of their blocks makes nodes, so a step writes as many."""
    monkeypatch.setattr(logical_map, "MOST_RECENT", 64)
    monkeypatch.setattr(chunk_store, "MOST_DROPPED", 64)
    choose, few, most = random.Random(7), 300, 0  # of some 850 nodes
    with closing(LogStructuredDisk.open(wide, sync=False, memory=few * NODE_BYTES)) as disk:
        for _ in range(100):
            disk.write_many([(lba, block(1)) for lba in choose.sample(range(WIDE), 16)])
            most = max(most, len(disk.state.pages.nodes))
        assert most <= 1.25 * few


def passing_snapshots(disk: LogStructuredDisk, count: int, written: int) -> None:
    """Take snapshots and delete them, with one write of some places in between."""
    choose = random.Random(7)
    for number in range(count):
        disk.snapshot(f"passing{number}")
        disk.write_many([(lba, block(1)) for lba in choose.sample(range(WIDE), written)])
        disk.delete(f"passing{number}")


@pytest.mark.parametrize("work", ["settle", "background", "clean"])
def test_reclaim_keeps_to_the_memory_while_nobody_writes(
    wide: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """What it drops changes nodes of the middle map, so it takes steps of checkpoints."""
    monkeypatch.setattr(chunk_store, "MOST_DROPPED", 64)
    few, most = 300, 0  # of some 850 nodes
    with closing(LogStructuredDisk.open(wide, sync=False, memory=few * NODE_BYTES)) as disk:
        disk.state.survey.finish()
        passing_snapshots(disk, 16, 100)
        pages, new = disk.state.pages, disk.state.pages.new

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal most
            most = max(most, len(pages.nodes))
            return new(*arguments, **options)

        monkeypatch.setattr(pages, "new", counted)
        assert disk.state.views.deleted
        while getattr(disk, work)() and work == "background":
            pass
        assert not disk.state.views.deleted and most > few // 2
        assert most <= 1.25 * few


def test_reclaim_reads_no_leaf_that_others_hold(wide: Path) -> None:
    with closing(LogStructuredDisk.open(wide, sync=False, memory=100 * NODE_BYTES)) as disk:
        disk.state.survey.learn_births()
        passing_snapshots(disk, 1, 16)
        before, steps = reads(disk, "reclaim"), disk.state.reclaimer.steps
        disk.settle()
        # One for each of the 16 leaves, and for those between two of them; 64 in a step at most.
        assert 16 < disk.state.reclaimer.steps - steps <= 40
        assert reads(disk, "reclaim") - before <= 16


def test_a_change_that_needs_a_lost_node_changes_nothing(
    disk: LogStructuredDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, middle = disk.state.pages, disk.state.chunks.middle
    mbas = [mba for mba, _ in middle.items()]
    removed, last = [mbas[0], mbas[BLOCKS // 2], mbas[-1]], middle.leaf(mbas[-1]).page
    before = list(middle.items()), dict(pages.in_use)
    disk.limit_memory(0)
    for lba in range(512):
        disk.read(lba)
    assert last not in pages.nodes
    with monkeypatch.context() as patch:
        lose(disk, last, patch)
        with pytest.raises(DataLost):
            middle.remove_many(removed)
        with pytest.raises(DataLost):
            middle.put_many(removed, [(1, 1)] * 3)
    assert (list(middle.items()), dict(pages.in_use)) == before


def test_a_write_that_needs_a_lost_node_is_refused(
    disk: LogStructuredDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = disk.state.views.live_map
    disk.limit_memory(0)
    lost = live.leaf(BLOCKS - 1).page
    for lba in range(512):
        disk.read(lba)
    assert lost not in disk.state.pages.nodes
    head = disk.state.log.head
    with monkeypatch.context() as patch:
        lose(disk, lost, patch)
        with pytest.raises(DataLost):
            disk.write(BLOCKS - 1, block(1))
        with pytest.raises(DataLost):
            disk.unmap(BLOCKS - 1, 1)
        with pytest.raises(DataLost):
            disk.write_many([(0, block(1)), (BLOCKS - 1, block(1))])
    assert disk.usable and disk.state.log.head == head
    assert disk.read(BLOCKS - 1) == block(BLOCKS - 1) and disk.read(0) == block(0)


def test_a_mapped_block_takes_few_bytes(wide: Path) -> None:
    """At most 64 bytes over all maps, where nodes are full."""
    with closing(LogStructuredDisk.open(wide, sync=False)) as disk:
        disk.state.survey.finish()
        for page, (kind, _) in disk.state.pages.in_use.items():
            disk.state.pages.get(page, kind)
        assert disk.state.pages.has_all()
        assert len(disk.state.pages.nodes) * NODE_BYTES < 64 * WIDE


def known(path: Path, blocks: int) -> tuple[int, int, int]:
    """Open a disk with little memory for nodes, and end its survey.

    Returns the bytes of memory that it takes then, and how many pages and segments are in use.
    """
    sizes = plan(blocks, block_bytes=512, fanout=8, segment_blocks=8)
    LogStructuredDisk.create(path, sizes, sync=False)
    with closing(LogStructuredDisk.open(path, sync=False)) as disk:
        for lba in range(0, blocks, FILLED):
            disk.write(lba, bytes(FILLED * 512))
        for lba in range(0, blocks, 8):  # leaves every segment partly dead
            disk.write(lba, bytes(512))
        disk.checkpoint()
    gc.collect()
    tracemalloc.start()
    with closing(LogStructuredDisk.open(path, sync=False, memory=0)) as disk:
        disk.state.survey.finish()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(disk.state.segments.victims) >= blocks // 8
        return taken, disk.state.pages.used_count, disk.state.segments.sealed_count


def test_what_is_always_in_memory_takes_few_bytes_a_page_and_a_segment(tmp_path: Path) -> None:
    """A page in use takes at most 24 bytes, and a segment 96, whatever the size of the disk."""
    few, many = known(tmp_path / "few", 2048), known(tmp_path / "many", 8192)
    taken, pages, segments = (large - small for large, small in zip(many, few, strict=True))
    assert pages > 2000 and segments > 700
    assert taken <= 24 * pages + 96 * segments


def lacking(path: Path, blocks: int) -> tuple[int, int, int]:
    """Begin to rebuild a device of a disk with little memory for nodes.

    Returns the bytes that this takes, the bytes that it takes at most, and how many stripes the
    device lacks.
    """
    sizes = plan(blocks, block_bytes=512, fanout=8, segment_blocks=8)
    LogStructuredDisk.create(path, sizes, sync=False)
    with closing(LogStructuredDisk.open(path, sync=False, memory=0)) as disk:
        for lba in range(0, blocks, FILLED):
            disk.write(lba, bytes(FILLED * 512))
        disk.checkpoint()
        disk.fail(1, "degraded")
        gc.collect()
        tracemalloc.start()
        disk.replace(1)
        taken, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return taken, most, disk.resync.progress()[1]


def test_a_stripe_that_a_device_lacks_takes_few_bytes(tmp_path: Path) -> None:
    """At most 24 bytes while the device is rebuilt, and 96 while the stripes are sorted."""
    few, many = lacking(tmp_path / "few", 2048), lacking(tmp_path / "many", 16384)
    taken, most, stripes = (large - small for large, small in zip(many, few, strict=True))
    assert stripes > 5000
    assert taken <= 24 * stripes
    assert most <= 96 * stripes
