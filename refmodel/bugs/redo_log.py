"""Bugs of redo-log chains. Those that specs/mutants has too have the same names there."""

from refmodel.bugs.registry import bug, override
from refmodel.redolog.consolidation import Job
from refmodel.redolog.disk import RedoLogDisk

ENGINE = "redo-se"


@bug(
    49,
    "SEsparse, VMware KB 59216",
    "a write to a block that the consolidation has dealt with is not dealt with again",
    engine=ENGINE,
)
def burst_lost(disk: RedoLogDisk) -> None:
    """Plant it: the consolidation is not told what changed."""
    override(disk.consolidation, "live_changed", lambda lbas: None)


@bug(19, "SPDK 1291", "a consolidation merges data and not what was unmapped", engine=ENGINE)
def holes_not_merged(disk: RedoLogDisk) -> None:
    """Plant it: unmapped blocks are left out of every step."""
    next_blocks = disk.consolidation.next_blocks

    def next_data(job: Job) -> dict[int, bytes | None]:
        return {lba: data for lba, data in next_blocks(job).items() if data is not None}

    override(disk.consolidation, "next_blocks", next_data)


@bug(
    17,
    "longhorn-engine 108",
    "a layer is merged into one that a snapshot still ends in: the older snapshot changes",
    engine=ENGINE,
)
def parent_still_named(disk: RedoLogDisk) -> None:
    """Plant it: the lower layer of a merge may be the top of a snapshot."""
    choose = disk.consolidation.choose

    def choose_any() -> tuple[int, int] | None:
        descriptor = disk.tree.descriptor
        for lower, uppers in descriptor.above().items():
            if len(uppers) == 1 and uppers[0] not in descriptor.tops:
                return lower, uppers[0]
        return choose()

    override(disk.consolidation, "choose", choose_any)


@bug(
    33,
    "littlefs PR 948; Open-CAS 519, 393",
    "a grain table entry counts before the grain that it leads to",
    engine=ENGINE,
)
def entry_before_data(disk: RedoLogDisk) -> None:
    """Plant it: users' writes do not flush grains before their entries."""
    flush = disk.store.flush_before_entries

    def flush_merged(cause: str) -> None:
        if cause != "foreground":
            flush(cause)

    override(disk.store, "flush_before_entries", flush_merged)
