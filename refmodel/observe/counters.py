"""Counters: what a disk has done since it was opened, and what it holds now. This is the one place that names them.

A family is one thing that is counted, with a sample for each value of its labels. docs/counters.md is `python -m refmodel.observe.counters`; `stats` shows them
as a table, as JSON and as OpenMetrics text (refmodel.observe.exporters). The kit's dialogue has them flat: `device.performance.writes.checkpoint`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from refmodel.cache.disk import LEG as CACHE_LEG
from refmodel.cache.disk import CachedDisk
from refmodel.core.histogram import Histogram
from refmodel.log_structured import audit, space_report
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.cow_btree import LAST
from refmodel.log_structured.maps.node import MapKind
from refmodel.log_structured.views import ViewState
from refmodel.registry import Disk

Value = int | float | Histogram
Samples = Iterable[tuple[tuple[str, ...], Value]]  # the labels' values, and the counter's
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
LIVE, DELETED = "(live)", "(deleted)"  # as the label `view`: no snapshot can be called so


class Family(NamedTuple):
    """Counters only grow while the disk is open, gauges do not."""

    name: str
    kind: str
    unit: str
    help: str
    samples: Callable[[Any], Samples]  # of a disk whose engine has it
    labels: tuple[str, ...] = ()
    flat: str = ""  # name in the dialogue, with labels in braces; what a label is left out of is added up there
    walks: bool = False  # it costs a walk over every map, so it is looked at only when asked for


def families(disk: Disk) -> list[Family]:
    """What is counted of a disk of this engine."""
    return [
        *COMMON,
        *BY_ENGINE[disk.geometry.engine],
        *(CACHE if isinstance(disk, CachedDisk) else []),
    ]


def counters(disk: Disk) -> dict[str, int]:
    """Every counter and gauge that costs no walk, flat."""
    found: dict[str, int] = {}
    for family in families(disk):
        if family.kind != HISTOGRAM and not family.walks:
            found |= _flat(family, disk)
    return found


def work(disk: Disk) -> dict[str, int]:
    """The counters of what was done, flat: they may be added up over disks and openings."""
    found: dict[str, int] = {}
    for family in families(disk):
        if family.kind == COUNTER:
            found |= _flat(family, disk)
    return found


def _flat(family: Family, disk: Disk) -> dict[str, int]:
    found: Counter[str] = Counter()
    for values, value in family.samples(disk):
        found[_flat_name(family.flat, family.name, family.labels, values)] += value
    return dict(sorted(found.items()))


@lru_cache(maxsize=4096)  # every opening of every disk has the same few hundred
def _flat_name(flat: str, name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    flat = flat or ".".join([name, *(f"{{{label}}}" for label in labels)])
    return flat.format(**dict(zip(labels, values)))


# Where each comes from.


def _one(get: Callable[[LogStructuredDisk], Value]) -> Callable[[LogStructuredDisk], Samples]:
    return lambda disk: [((), get(disk))]


def _operations(disk: Disk) -> Samples:
    return [((name,), found.count) for name, found in sorted(disk.operations.nanoseconds.items())]


def _operation_bytes(disk: Disk) -> Samples:
    size = disk.geometry.block_bytes
    return [
        ((name,), found.total * size)
        for name, found in sorted(disk.operations.blocks.items())
        if found.total
    ]


def _device(what: str) -> Callable[[LogStructuredDisk], Samples]:
    def samples(disk: LogStructuredDisk) -> Iterator[tuple[tuple[str, ...], int]]:
        for (leg, device), meter in sorted(disk.meters.items()):
            for cause, count in sorted(getattr(meter, what).items()):
                yield (str(device), leg, cause), count

    return samples


def device_bytes_written(disk: Disk) -> int:
    """What a host's cache writes to its own device is not the disk's."""
    return sum(
        sum(meter.bytes_written.values())
        for (leg, _), meter in disk.meters.items()
        if leg != CACHE_LEG
    )


def _device_amplification(disk: Disk) -> float:
    wanted = disk.operations.blocks_of("write") * disk.geometry.block_bytes
    return device_bytes_written(disk) / wanted if wanted else 0.0


def _cleaning_amplification(disk: LogStructuredDisk) -> float:
    chunks = disk.state.chunks
    new = chunks.destaged + disk.state.large_writes.placed
    return (new + chunks.moved) / new if new else 0.0


def reduction(disk: LogStructuredDisk) -> float:
    """Chunks that views hold to the space that they take, both counted in blocks."""
    occupied = disk.state.space_usage.occupied
    return len(_holders(disk)) * disk.geometry.chunk_units / occupied if occupied else 1.0


def _compression(disk: LogStructuredDisk) -> float:
    chunks, units = disk.state.chunks, disk.geometry.chunk_units
    return chunks.destaged * units / chunks.destaged_units if chunks.destaged_units else 1.0


def _segment_states(disk: LogStructuredDisk) -> Samples:
    segments = disk.state.segments
    return [
        (("free",), segments.free_count),
        (("sealed",), len(segments.sealed)),
        (("dead",), len(segments.dead)),
    ]


def _utilisation(disk: LogStructuredDisk) -> Samples:
    segments = disk.state.segments
    found = Counter(
        -(-10 * usage.live // segments.units) * 10 for usage in segments.sealed.values()
    )
    return [((str(percent),), found[percent]) for percent in range(10, 101, 10)]


def _pages_of(disk: LogStructuredDisk) -> Samples:
    return [((kind.name.lower(),), disk.state.pages.used[kind]) for kind in MapKind]


def _pages_shared(disk: LogStructuredDisk) -> int:
    """Nodes of the logical maps that several views reach."""
    reached: Counter[int] = Counter()
    for view in disk.state.views.by_id.values():
        pages: set[int] = set()
        audit.reach(view.map, view.map.root, view.cursor, LAST, pages)
        reached.update(pages)
    return sum(count > 1 for count in reached.values())


def _component_states(disk: LogStructuredDisk) -> Samples:
    return sorted(
        Counter((standing.leg, str(standing.state)) for standing in disk.status()).items()
    )


def _lacking(disk: LogStructuredDisk) -> Samples:
    return [((str(device),), stripes) for device, stripes in sorted(disk.resync.progress().items())]


def _mapped(disk: LogStructuredDisk) -> Samples:
    return [((held.name or LIVE,), held.mapped) for held in space_report.by_view(disk.state.views)]


def _exclusive(disk: LogStructuredDisk) -> Samples:
    return [
        ((held.name or LIVE,), held.exclusive) for held in space_report.by_view(disk.state.views)
    ] + [((DELETED,), _leaving(disk))]


def _holders(disk: LogStructuredDisk) -> dict[int, list[ViewState]]:
    holders: dict[int, list[ViewState]] = {}
    for view in disk.state.views.by_id.values():
        for _, mba in view.map.items(view.cursor):
            holders.setdefault(mba, []).append(view.state)
    return holders


def _leaving(disk: LogStructuredDisk) -> int:
    return sum(set(states) == {ViewState.DELETED} for states in _holders(disk).values())


def _shared(disk: LogStructuredDisk) -> int:
    return sum(
        len(states) > 1 and set(states) != {ViewState.DELETED} for states in _holders(disk).values()
    )


BY_OPERATION, BY_DEVICE, BY_VIEW = ("operation",), ("device", "leg", "cause"), ("view",)

COMMON = [
    Family("operations", COUNTER, "operations", "operations done", _operations, BY_OPERATION),
    Family("operations.bytes", COUNTER, "bytes", "what they wrote, read or unmapped", _operation_bytes, BY_OPERATION),
    Family("operations.latency", HISTOGRAM, "seconds", "how long each took", lambda disk: [((n,), h) for n, h in sorted(disk.operations.nanoseconds.items())], BY_OPERATION),
    Family("operations.length", HISTOGRAM, "blocks", "how many blocks each was about", lambda disk: [((n,), h) for n, h in sorted(disk.operations.blocks.items()) if h.total], BY_OPERATION),
    Family("device.reads", COUNTER, "I/Os", "reads of devices", _device("reads"), BY_DEVICE, "device.{leg}.reads.{cause}"),
    Family("device.writes", COUNTER, "I/Os", "writes to devices", _device("writes"), BY_DEVICE, "device.{leg}.writes.{cause}"),
    Family("device.flushes", COUNTER, "I/Os", "flushes of devices", _device("flushes"), BY_DEVICE, "device.{leg}.flushes.{cause}"),
    Family("device.bytes_read", COUNTER, "bytes", "bytes that those reads read", _device("bytes_read"), BY_DEVICE, "device.{leg}.bytes_read.{cause}"),
    Family("device.bytes_written", COUNTER, "bytes", "bytes that those writes wrote", _device("bytes_written"), BY_DEVICE, "device.{leg}.bytes_written.{cause}"),
    Family("write_amplification.devices", GAUGE, "ratio", "bytes written to devices for each byte that users wrote; 0 before the first", _one(_device_amplification)),
]  # fmt: skip

LOG_STRUCTURED = [
    Family("chunks.destaged", COUNTER, "chunks", "chunks that went from the bank to segments", _one(lambda disk: disk.state.chunks.destaged)),
    Family("chunks.placed", COUNTER, "chunks", "chunks that large writes put into segments at once", _one(lambda disk: disk.state.large_writes.placed)),
    Family("chunks.moved", COUNTER, "chunks", "chunks that the cleaner moved", _one(lambda disk: disk.state.chunks.moved)),
    Family("write_amplification.cleaning", GAUGE, "ratio", "chunks written to segments for each new one; 0 before the first", _one(_cleaning_amplification)),
    Family("chunks.live", GAUGE, "chunks", "chunks that some view holds, in the bank or in segments; where data is reduced, the space that they take, in chunks that are not", _one(lambda disk: disk.state.space_usage.live)),
    Family("chunks.usable", GAUGE, "chunks", "how many there may be; beyond it writes are refused with `no-space`", _one(lambda disk: disk.geometry.usable_chunks)),
    Family("reduction.ratio", GAUGE, "ratio", "chunks that views hold to the space that they take; 1 where data is not reduced, or none is held", _one(reduction), walks=True),
    Family("compression.ratio", GAUGE, "ratio", "chunks that went from the bank to segments to the space that they took; 1 before the first", _one(_compression)),
    Family("deduplication.found", COUNTER, "chunks", "chunks that were not stored, since another had their data", _one(lambda disk: disk.state.chunks.deduplication.found)),
    Family("bank.chunks", GAUGE, "chunks", "chunks that wait to be destaged", _one(lambda disk: len(disk.state.chunks.bank))),
    Family("segments", GAUGE, "segments", "segments by state; a dead one becomes free at the next checkpoint", _segment_states, ("state",)),
    Family("segments.filled", COUNTER, "segments", "segments filled and written", _one(lambda disk: disk.state.segments.fillings)),
    Family("segments.utilisation", GAUGE, "segments", "sealed segments, by how many percent of their chunks live at most", _utilisation, ("percent",)),
    Family("pages.used", GAUGE, "pages", "pages of the performance leg that hold tree nodes", _one(lambda disk: len(disk.state.pages.in_use))),
    Family("pages.free", GAUGE, "pages", "pages that can be allocated", _one(lambda disk: disk.state.pages.free_count)),
    Family("pages.of", GAUGE, "pages", "pages by the map that they belong to", _pages_of, ("map",)),
    Family("pages.shared", GAUGE, "pages", "nodes of logical maps that several views share", _one(_pages_shared), walks=True),
    Family("pages.created", COUNTER, "pages", "nodes made", _one(lambda disk: disk.state.pages.created)),
    Family("pages.copied", COUNTER, "pages", "those of them that are copies, made because the node was shared or durable", _one(lambda disk: disk.state.pages.copied)),
    Family("pages.freed", COUNTER, "pages", "nodes let go", _one(lambda disk: disk.state.pages.freed)),
    Family("log.used_bytes", GAUGE, "bytes", "what of the durable log has to be replayed", _one(lambda disk: disk.state.log.used)),
    Family("log.size_bytes", GAUGE, "bytes", "its size", _one(lambda disk: disk.geometry.log_bytes)),
    Family("log.remirrored", COUNTER, "records", "copies of records that recovery made good", _one(lambda disk: disk.state.log.remirrored)),
    Family("checkpoint.number", GAUGE, "checkpoints", "checkpoints ever", _one(lambda disk: disk.state.checkpoint_number)),
    Family("views.snapshots", GAUGE, "views", "snapshots", _one(lambda disk: len(disk.state.views.names))),
    Family("views.deleted", GAUGE, "views", "deleted views that wait for reclaim", _one(lambda disk: len(disk.state.views.deleted))),
    Family("space.mapped", GAUGE, "chunks", "blocks that a view maps", _mapped, BY_VIEW, walks=True),
    Family("space.exclusive", GAUGE, "chunks", "chunks that no other view holds; (deleted): held by deleted views alone", _exclusive, BY_VIEW, walks=True),
    Family("space.shared", GAUGE, "chunks", "chunks that several views hold", _one(_shared), walks=True),
    Family("repairs", COUNTER, "copies", "copies found wrong and rewritten from good ones", lambda disk: [((leg.name,), leg.repairs) for leg in (disk.array.performance, disk.array.capacity)], ("leg",)),
    Family("components", GAUGE, "components", "components by state", _component_states, ("leg", "state")),
    Family("resync.lacking", GAUGE, "stripes", "stripes that a device which catches up still lacks", _lacking, ("device",)),
]  # fmt: skip

REDO_LOG = [
    Family("layers", GAUGE, "layers", "the base and its deltas", _one(lambda disk: len(disk.tree.layers))),
    Family("layers.depth", GAUGE, "layers", "how many the live view reads through", _one(lambda disk: len(disk.tree.descriptor.chain(None)))),
    Family("tables.hits", COUNTER, "look-ups", "look-ups in grain tables that memory answered", _one(lambda disk: disk.tree.tables.hits)),
    Family("tables.misses", COUNTER, "look-ups", "look-ups in grain tables that cost a read", _one(lambda disk: disk.tree.tables.misses)),
    Family("consolidation.blocks", COUNTER, "blocks", "blocks that consolidations moved", _one(lambda disk: disk.consolidation.merged)),
    Family("consolidation.layers", COUNTER, "layers", "layers that consolidations ended", _one(lambda disk: disk.consolidation.dropped)),
    Family("views.snapshots", GAUGE, "views", "snapshots", _one(lambda disk: len(disk.tree.descriptor.snapshots))),
]  # fmt: skip

ARRAY = [family for family in LOG_STRUCTURED if family.name in ("repairs", "components")]
IN_PLACE = [
    Family("log.used_bytes", GAUGE, "bytes", "what of the journal has to be replayed", _one(lambda disk: disk.journal.used)),
    Family("log.size_bytes", GAUGE, "bytes", "its size", _one(lambda disk: disk.geometry.log_bytes)),
    Family("log.remirrored", COUNTER, "records", "copies of records that recovery made good", _one(lambda disk: disk.journal.remirrored)),
    Family("checkpoint.number", GAUGE, "checkpoints", "checkpoints ever", _one(lambda disk: disk.checkpoints)),
    *ARRAY,
]  # fmt: skip

CACHE = [
    Family("cache.blocks", COUNTER, "blocks", "blocks that were read from live, by whether the cache held them", lambda disk: [((outcome,), count) for outcome, count in sorted(disk.blocks.items())], ("outcome",)),
    Family("cache.hit_rate", GAUGE, "ratio", "hits to all of them; 0 before the first", _one(lambda disk: disk.blocks["hit"] / (disk.blocks.total() or 1))),
    Family("cache.latency", HISTOGRAM, "seconds", "how long reads of live took, by whether the cache held all, none or a part", lambda disk: [((outcome,), found) for outcome, found in disk.reads.items() if found.count], ("outcome",)),
    Family("cache.slots", GAUGE, "slots", "room for so many cache blocks", _one(lambda disk: disk.slots)),
    Family("cache.used_slots", GAUGE, "slots", "slots that hold anything", _one(lambda disk: disk.used_slots)),
    Family("cache.held_blocks", GAUGE, "blocks", "blocks that are held", _one(lambda disk: disk.held_blocks)),
    Family("cache.evictions", COUNTER, "slots", "slots given to another cache block", _one(lambda disk: disk.evictions)),
]  # fmt: skip

BY_ENGINE = (
    {"log-structured": LOG_STRUCTURED}
    | dict.fromkeys(("in-place-raid5", "in-place-raid6"), IN_PLACE)
    | dict.fromkeys(("redo-vmfs", "redo-se", "redo-vsan"), REDO_LOG)
)
FAMILIES = [*COMMON, *LOG_STRUCTURED]

CAUSES = {
    "foreground": "the operation itself: the log record and its flush, the data of large writes, reads of maps and chunks",
    "journal": "of an in-place array: the record of a write, which closes the write hole",
    "cache": "hits and fills of a read cache, on the host's own device",
    "migrate": "taking the contents of a read cache along to another host",
    "consolidate": "of a redo-log chain: merging one layer into another",
    "destage": "writing the bank to segments",
    "checkpoint": "nodes, the slot, and their flushes",
    "clean": "reading what lives in a victim, and segments filled with moved chunks alone",
    "reclaim": "reading maps of deleted views",
    "resync": "copying what a device missed while it was absent",
    "rebuild": "filling a new device",
    "scrub": "verifying",
    "repair": "rewriting copies that were wrong",
    "recovery": "opening the disk",
}


def document() -> str:
    """docs/counters.md."""
    parts = [HEAD]
    for heading, some in SECTIONS.items():
        parts += [
            f"## {heading}",
            "",
            "| counter | kind | unit | labels | what |",
            "|---|---|---|---|---|",
        ]
        for family in some:
            walks = "; costs a walk over the maps" if family.walks else ""
            parts.append(
                f"| `{family.name}` | {family.kind} | {family.unit} | {', '.join(family.labels)} | {family.help}{walks} |"
            )
        parts.append("")
    causes = [f"| `{cause}` | {what} |" for cause, what in CAUSES.items()]
    return "\n".join(
        [
            *parts,
            "## Causes of device I/O",
            "",
            "| cause | the I/O was for |",
            "|---|---|",
            *causes,
            "",
        ]
    )


SECTIONS = {
    "Every disk": COMMON,
    "The log-structured engine": LOG_STRUCTURED,
    "Redo-log chains": REDO_LOG,
    "In-place arrays": IN_PLACE,
    "A read cache, in front of any of them": CACHE,
}

HEAD = """# Counters of the engines

This file is what `python -m refmodel.observe.counters` prints; a test compares them.

`refmodel stats DIR` prints them as a table, `--json` as one object (histograms as buckets: upper bound, how many values lie at or below it), `--openmetrics` as OpenMetrics text
for Prometheus and its kin, with `refmodel_` before each name and `_` for dots. `refmodel top DIR` shows them live while a server or a bench has the disk open.
Counters begin at 0 when the disk is opened; gauges say what it holds now. They add up: `tests/refmodel/observe/test_counters_add_up.py` has the identities.

In the kit's dialogue `stats` answers with the counters, flat and since the disk was created: the labels follow the name (`operations.write`), and devices are added up
(`device.performance.writes.checkpoint`).
"""

if __name__ == "__main__":
    print(document(), end="")
