"""What the audit and the scrub find where memory, the stored tables and the devices disagree."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from refmodel import LogStructuredDisk
from refmodel.array.member import ComponentState
from refmodel.journal import checkpoint as checkpoints
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks.sealed_segments import SegmentUsage
from refmodel.log_structured.scrub import scrub
from support.disks import block

BLOCKS = 40


@pytest.fixture
def disk(make: Callable[..., LogStructuredDisk]) -> LogStructuredDisk:
    """A disk with segments that are not full, a snapshot, and a tree of several levels."""
    disk = make(BLOCKS, segment_blocks=4, fanout=3, deduplication=True, spares=1)
    disk.write(0, b"".join(map(block, range(1, BLOCKS + 1))))
    disk.snapshot("s")
    for lba in range(0, BLOCKS, 3):
        disk.write(lba, block(100 + lba))
    disk.delete("s")
    disk.settle()
    disk.checkpoint()
    assert audit(disk.state) == []
    return disk


def victim(disk: LogStructuredDisk) -> int:
    """Return a segment that may be cleaned."""
    return next(at for at in disk.state.segments.sealed if at in disk.state.segments.victims)


def forget_victim(disk: LogStructuredDisk) -> None:
    disk.state.segments.victims.discard(victim(disk))


def lose_candidates(disk: LogStructuredDisk) -> None:
    for heaps in disk.state.segments.victims._buckets:
        for heap in heaps:
            heap.clear()


def miscount_victims(disk: LogStructuredDisk) -> None:
    disk.state.segments.victims._sizes[1] += 1


def misjudge_victim(disk: LogStructuredDisk) -> None:
    segment = victim(disk)
    live, filled, _ = disk.state.segments.sealed[segment]
    disk.state.segments.victims.put(segment, live, filled - 1)


def queue_for_ever(disk: LogStructuredDisk) -> None:
    disk.state.chunks.queues[0].add({7: 1}, 1)


def miscount_queue(disk: LogStructuredDisk) -> None:
    disk.state.chunks.queues[0].units += 1


def queue_nothing(disk: LogStructuredDisk) -> None:
    disk.write(1, block(250))
    state = disk.state
    (mba,) = state.chunks.bank
    state.chunks.moving[mba] = state.chunks.bank[mba]
    for queue in state.chunks.queues:
        queue.discard([mba])


def compare_what_is_gone(disk: LogStructuredDisk) -> None:
    disk.state.chunks.deduplication.add([7])


def change_usage_unstored(disk: LogStructuredDisk) -> None:
    sealed = disk.state.segments.sealed
    segment = next(iter(sealed))
    sealed[segment] = SegmentUsage(*sealed[segment][:1], sealed[segment].filled - 1)


def change_view_unstored(disk: LogStructuredDisk) -> None:
    disk.state.views.live.fork += 1


def change_node_in_place(disk: LogStructuredDisk) -> None:
    pages = disk.state.pages
    leaf = disk.state.views.live_map.leaf(5)
    assert leaf.page in pages._clean
    leaf.values[0] += 1


def keep_node_for_ever(disk: LogStructuredDisk) -> None:
    disk.state.pages._clean.popitem()


def miscount_new_nodes(disk: LogStructuredDisk) -> None:
    disk.state.pages._dirty_logical += 1


def miscount_pages(disk: LogStructuredDisk) -> None:
    counts = disk.state.pages.in_use.counts
    first, second = [kind for kind in counts if counts[kind]][:2]
    counts[first], counts[second] = counts[first] + 1, counts[second] - 1


def raise_bound(disk: LogStructuredDisk) -> None:
    live = disk.state.views.live_map
    root = disk.state.pages.get(live.root, live.kind)
    assert root.level
    root.keys[0] += 1


def mix_levels(disk: LogStructuredDisk) -> None:
    live = disk.state.views.live_map
    root = disk.state.pages.get(live.root, live.kind)
    assert root.level > 1
    root.values[0] = disk.state.pages.get(root.values[0], live.kind).values[0]


PLANTED: dict[Callable[[LogStructuredDisk], None], str] = {
    forget_victim: "is not to be cleaned",
    lose_candidates: "is not among the candidates",
    miscount_victims: "segments may be cleaned",
    misjudge_victim: "as one that it is not",
    queue_for_ever: "queued and not in memory",
    miscount_queue: "the queues do not count",
    queue_nothing: "in memory and not queued",
    compare_what_is_gone: "are not those that are compared",
    change_usage_unstored: "the usage of segments",
    change_view_unstored: "are stored otherwise",
    change_node_in_place: "in memory are not those on the media",
    keep_node_for_ever: "stay in memory for ever",
    miscount_new_nodes: "new nodes are of logical maps",
    miscount_pages: "are not those of each map",
    raise_bound: "are not in order",
    mix_levels: "is not of the level below",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_audit_finds_it(disk: LogStructuredDisk, plant: Callable[..., None]) -> None:
    plant(disk)
    found = audit(disk.state)
    assert any(PLANTED[plant] in line for line in found), found


def test_a_segment_whose_chunks_all_move_need_not_be_a_candidate(disk: LogStructuredDisk) -> None:
    assert disk.cleaner.move(disk.state.segments.units)
    assert audit(disk.state) == []


@pytest.mark.parametrize("name", ["next_view", "log_sequence", "sealed", "live"])
def test_a_scrub_compares_the_newest_slot_with_memory(
    disk: LogStructuredDisk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write = checkpoints.write

    def write_wrong(leg: Any, slot: checkpoints.Checkpoint) -> None:
        write(leg, replace(slot, **{name: getattr(slot, name) + 1}))

    monkeypatch.setattr(checkpoints, "write", write_wrong)
    (problem,) = scrub(disk).contradictions
    assert problem.startswith(f"the newest checkpoint has {name} ")


def test_a_scrub_has_looked_at_everything_that_is_stored(
    disk: LogStructuredDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scrub(disk).contradictions == []
    stored = [*disk.state.pages.stored()]
    monkeypatch.setattr(disk.state.pages, "stored", lambda: iter(stored[1:]))
    (problem,) = scrub(disk).contradictions
    assert problem.endswith(" were verified: page")


def test_a_scrub_compares_the_record_of_the_members_with_memory(disk: LogStructuredDisk) -> None:
    disk.array.members[0].id = "0" * 32
    disk.array.spares.clear()
    assert [line for line in scrub(disk).contradictions if "on record" in line] == [
        "the members are not on record as they are",
        "the spares, or the devices that have left, are not on record as they are",
    ]


def test_a_scrub_finds_a_member_that_is_active_and_lacks_something(
    disk: LogStructuredDisk,
) -> None:
    component = disk.array.capacity.components[1]
    component.lack([2])
    assert component.member.state is ComponentState.ACTIVE
    assert scrub(disk).contradictions == [
        "device 1 is active, and lacks 1 stripes of the capacity leg"
    ]
