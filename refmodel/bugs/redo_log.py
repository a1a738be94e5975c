"""Bugs of redo-log chains; those that specs/mutants has too are called the same."""

from refmodel.bugs.registry import bug
from refmodel.redolog.consolidation import Job
from refmodel.redolog.descriptor import BASE
from refmodel.redolog.disk import RedoLogDisk

ENGINE = "redo-se"


@bug(
    49,
    "SEsparse, VMware KB 59216",
    "a write to a block that the consolidation has dealt with is not dealt with again",
    engine=ENGINE,
)
def burst_lost(disk: RedoLogDisk) -> None:
    disk._redone = lambda blocks: None


@bug(19, "SPDK 1291", "a consolidation merges data and not what was unmapped", engine=ENGINE)
def holes_not_merged(disk: RedoLogDisk) -> None:
    merge = disk._merge

    def merge_data() -> None:
        lower = disk.layers[disk.job.lower]
        put = lower.put
        lower.put = lambda blocks, cause: put(
            {lba: data for lba, data in blocks.items() if data is not None}, cause
        )
        try:
            merge()
        finally:
            lower.put = put

    disk._merge = merge_data


def _above(disk: RedoLogDisk) -> dict[int, list[int]]:
    """The layers that stand on each."""
    above: dict[int, list[int]] = {}
    for upper in sorted(disk.descriptor.used - {BASE}):
        above.setdefault(disk.descriptor.parents[upper], []).append(upper)
    return above


@bug(
    17,
    "longhorn-engine 108",
    "a layer is merged into one that a snapshot still ends in: the older snapshot changes",
    engine=ENGINE,
)
def parent_still_named(disk: RedoLogDisk) -> None:
    consolidate = disk._consolidate

    def consolidate_any() -> bool:
        ends = {snapshot.top for snapshot in disk.descriptor.snapshots.values()}
        for lower, uppers in _above(disk).items():
            if len(uppers) == 1 and uppers[0] not in ends | {disk.descriptor.live}:
                disk.job = Job(lower, uppers[0], disk.geometry.blocks)
                return True
        return consolidate()

    disk._consolidate = consolidate_any


@bug(
    33,
    "littlefs PR 948; Open-CAS 519, 393",
    "a grain table entry counts before the grain that it leads to",
    engine=ENGINE,
)
def entry_before_data(disk: RedoLogDisk) -> None:
    put = disk._put

    def put_at_once(blocks) -> None:
        flush = disk.store.flush
        disk.store.flush = lambda cause: None
        try:
            put(blocks)
        finally:
            disk.store.flush = flush

    disk._put = put_at_once
