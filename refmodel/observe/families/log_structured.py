"""Counters of the log-structured engine."""

from collections import Counter
from collections.abc import Callable

from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.maps.node import MapKind
from refmodel.observe.families.array import ARRAY
from refmodel.observe.families.family import COUNTER, GAUGE, Family, Samples, Value, single
from refmodel.observe.families.views import VIEWS


def _cleaning_amplification(disk: LogStructuredDisk) -> float:
    chunks = disk.state.chunks
    new = chunks.destaged + disk.state.large_writes.placed
    return (new + chunks.moved) / new if new else 0.0


def _compression(disk: LogStructuredDisk) -> float:
    chunks, units = disk.state.chunks, disk.geometry.chunk_units
    return chunks.destaged * units / chunks.destaged_units if chunks.destaged_units else 1.0


def _segment_states(disk: LogStructuredDisk) -> Samples:
    segments = disk.state.segments
    return [
        (("free",), segments.free_count()),
        (("sealed",), segments.sealed_count),
        (("dead",), len(segments.dead)),
    ]


def _utilisation(disk: LogStructuredDisk) -> Samples:
    segments = disk.state.segments
    found = Counter(-(-10 * live // segments.units) * 10 for live in segments.sealed.lives())
    return [((str(percent),), found[percent]) for percent in sorted(found)]


def _pages_of(disk: LogStructuredDisk) -> Samples:
    return [((kind.name.lower(),), disk.state.pages.used[kind]) for kind in MapKind]


def _lacking(disk: LogStructuredDisk) -> Samples:
    return [((str(device),), stripes) for device, stripes in sorted(disk.resync.progress().items())]


def _counter(name: str, unit: str, help: str, get: Callable[[LogStructuredDisk], Value]) -> Family:
    return Family(name, COUNTER, unit, help, single(get))


def _gauge(name: str, unit: str, help: str, get: Callable[[LogStructuredDisk], Value]) -> Family:
    return Family(name, GAUGE, unit, help, single(get))


CHUNKS = [
    _counter(
        "chunks.destaged",
        "chunks",
        "chunks that were written from the bank to segments",
        lambda disk: disk.state.chunks.destaged,
    ),
    _counter(
        "chunks.placed",
        "chunks",
        "chunks that large writes put into segments directly",
        lambda disk: disk.state.large_writes.placed,
    ),
    _counter(
        "chunks.moved",
        "chunks",
        "chunks that the cleaner moved",
        lambda disk: disk.state.chunks.moved,
    ),
    _gauge(
        "write_amplification.cleaning",
        "ratio",
        "chunks written to segments per new chunk; 0 before the first",
        _cleaning_amplification,
    ),
    _gauge(
        "chunks.live",
        "chunks",
        "chunks that some view holds, in the bank or in segments; with data reduction: the space "
        "that they take, in chunks of full size",
        lambda disk: disk.state.space_usage.live,
    ),
    _gauge(
        "chunks.usable",
        "chunks",
        "how many chunks may be live; a write beyond it is refused with `no-space`",
        lambda disk: disk.geometry.usable_chunks,
    ),
    _gauge(
        "compression.ratio",
        "ratio",
        "chunks written from the bank to segments per chunk of space that they took; 1 before the "
        "first",
        _compression,
    ),
    _counter(
        "deduplication.found",
        "chunks",
        "chunks that were not stored because a chunk with the same data was",
        lambda disk: disk.state.chunks.deduplication.found,
    ),
    _gauge(
        "bank.chunks",
        "chunks",
        "chunks in the bank, which wait to be destaged",
        lambda disk: len(disk.state.chunks.bank),
    ),
]

SEGMENTS = [
    Family(
        "segments",
        GAUGE,
        "segments",
        "segments by state; a dead segment becomes free at the next checkpoint",
        _segment_states,
        ("state",),
    ),
    _counter(
        "segments.filled",
        "segments",
        "segments that were filled and written",
        lambda disk: disk.state.segments.fillings,
    ),
    Family(
        "segments.utilisation",
        GAUGE,
        "segments",
        "sealed segments, by the percentage of their chunks that is live (rounded up to tens)",
        _utilisation,
        ("percent",),
    ),
]

PAGES = [
    _gauge(
        "pages.used",
        "pages",
        "pages of the performance leg that hold tree nodes",
        lambda disk: disk.state.pages.used_count,
    ),
    _gauge(
        "pages.free",
        "pages",
        "pages that can be allocated",
        lambda disk: disk.state.pages.free_count(),
    ),
    Family(
        "pages.of", GAUGE, "pages", "pages by the map that they are part of", _pages_of, ("map",)
    ),
    _counter(
        "pages.created", "pages", "nodes that were made", lambda disk: disk.state.pages.created
    ),
    _counter(
        "pages.copied",
        "pages",
        "made nodes that are copies, because the old node was shared or durable",
        lambda disk: disk.state.pages.copied,
    ),
    _gauge(
        "pages.in_memory",
        "pages",
        "nodes that are in memory; `--memory` limits them",
        lambda disk: len(disk.state.pages.nodes),
    ),
    _counter(
        "pages.loaded",
        "pages",
        "nodes that were read from the media",
        lambda disk: disk.state.pages.loaded,
    ),
    _counter(
        "pages.evicted",
        "pages",
        "nodes that memory had no room for any more; they are on the media",
        lambda disk: disk.state.pages.evicted,
    ),
    _counter("pages.freed", "pages", "nodes that were freed", lambda disk: disk.state.pages.freed),
]

LOG = [
    _gauge(
        "log.used_bytes",
        "bytes",
        "bytes of the durable log that recovery would replay",
        lambda disk: disk.state.log.used(),
    ),
    _gauge(
        "log.size_bytes",
        "bytes",
        "size of the durable log",
        lambda disk: disk.geometry.log_bytes,
    ),
    _counter(
        "log.remirrored",
        "records",
        "copies of log records that recovery wrote anew on a mirror",
        lambda disk: disk.state.log.remirrored,
    ),
    _gauge(
        "checkpoint.number",
        "checkpoints",
        "checkpoints since the disk was created",
        lambda disk: disk.state.checkpoint_number,
    ),
    _counter(
        "checkpoint.increments",
        "checkpoints",
        "checkpoints since the disk was opened that stored changes of the maps in place of nodes",
        lambda disk: disk.state.increments.count,
    ),
    _gauge(
        "pages.of_changes",
        "pages",
        "pages of changes since the last whole checkpoint",
        lambda disk: disk.state.increments.page_count,
    ),
]


def _steps(disk: LogStructuredDisk) -> Samples:
    return [
        (("checkpoint",), disk.checkpoints.steps),
        (("cleaning",), disk.cleaning.steps),
        (("destage",), disk.state.segments.fillings),
        (("reclaim",), disk.state.reclaimer.steps),
        (("resync",), disk.resync.steps),
    ]


BACKGROUND = [
    Family(
        "background.steps",
        COUNTER,
        "steps",
        "steps of background work: of destage each writes one segment, of reclaim it frees at most "
        "one leaf, of resync it copies one stripe",
        _steps,
        ("work",),
    ),
    Family(
        "background.largest_step",
        GAUGE,
        "items",
        "the most that one step between operations has done: map changes or nodes of a checkpoint, "
        "units of space that cleaning moved",
        lambda disk: [
            (("checkpoint",), disk.checkpoints.most_done),
            (("cleaning",), disk.cleaning.most_moved),
        ],
        ("work",),
    ),
    Family(
        "background.at_once",
        COUNTER,
        "times",
        "how often an operation had to wait for all the work that was left: no step was enough",
        lambda disk: [
            (("checkpoint",), disk.checkpoints.forced),
            (("cleaning",), disk.cleaning.forced),
        ],
        ("work",),
    ),
]

RESYNC = Family(
    "resync.lacking",
    GAUGE,
    "stripes",
    "stripes that a resyncing device still lacks",
    _lacking,
    ("device",),
)
FAMILIES = [*CHUNKS, *SEGMENTS, *PAGES, *LOG, *BACKGROUND, *VIEWS, *ARRAY, RESYNC]
