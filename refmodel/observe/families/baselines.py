"""Counters of the other engines: redo-log chains, in-place arrays; and of the read cache."""

from collections.abc import Callable

from refmodel.cache.disk import CachedDisk
from refmodel.inplace.disk import InPlaceDisk
from refmodel.observe.families.array import ARRAY
from refmodel.observe.families.family import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    Family,
    Samples,
    Value,
    single,
)
from refmodel.redolog.disk import RedoLogDisk


def _chain(
    name: str, kind: str, unit: str, help: str, get: Callable[[RedoLogDisk], Value]
) -> Family:
    return Family(name, kind, unit, help, single(get))


def _array(
    name: str, kind: str, unit: str, help: str, get: Callable[[InPlaceDisk], Value]
) -> Family:
    return Family(name, kind, unit, help, single(get))


def _cached(
    name: str, kind: str, unit: str, help: str, get: Callable[[CachedDisk], Value]
) -> Family:
    return Family(name, kind, unit, help, single(get))


def _cache_blocks(disk: CachedDisk) -> Samples:
    return [((outcome,), count) for outcome, count in sorted(disk.cache.blocks.items())]


def _cache_latency(disk: CachedDisk) -> Samples:
    return [((outcome,), found) for outcome, found in disk.cache.reads.items() if found.count]


REDO_LOG = [
    _chain(
        "layers",
        GAUGE,
        "layers",
        "layers: the base and its deltas",
        lambda disk: len(disk.tree.layers),
    ),
    _chain(
        "layers.depth",
        GAUGE,
        "layers",
        "layers that the live view reads through",
        lambda disk: len(disk.tree.descriptor.chain(None)),
    ),
    _chain(
        "tables.hits",
        COUNTER,
        "look-ups",
        "look-ups in grain tables that were answered from memory",
        lambda disk: disk.tree.tables.hits,
    ),
    _chain(
        "tables.misses",
        COUNTER,
        "look-ups",
        "look-ups in grain tables that needed a read",
        lambda disk: disk.tree.tables.misses,
    ),
    _chain(
        "consolidation.blocks",
        COUNTER,
        "blocks",
        "blocks that consolidations moved",
        lambda disk: disk.consolidation.merged,
    ),
    _chain(
        "consolidation.layers",
        COUNTER,
        "layers",
        "layers that consolidations removed",
        lambda disk: disk.consolidation.dropped,
    ),
    _chain(
        "views.snapshots",
        GAUGE,
        "views",
        "snapshots",
        lambda disk: len(disk.tree.descriptor.snapshots),
    ),
]

IN_PLACE = [
    _array(
        "log.used_bytes",
        GAUGE,
        "bytes",
        "bytes of the journal that recovery would replay",
        lambda disk: disk.journal.used(),
    ),
    _array(
        "log.size_bytes",
        GAUGE,
        "bytes",
        "size of the journal",
        lambda disk: disk.geometry.log_bytes,
    ),
    _array(
        "log.remirrored",
        COUNTER,
        "records",
        "copies of journal records that recovery wrote anew on a mirror",
        lambda disk: disk.journal.remirrored,
    ),
    _array(
        "checkpoint.number",
        GAUGE,
        "checkpoints",
        "checkpoints since the disk was created",
        lambda disk: disk.checkpoints,
    ),
    *ARRAY,
]

CACHE = [
    Family(
        "cache.blocks",
        COUNTER,
        "blocks",
        "blocks that were read from the live view: hit or miss",
        _cache_blocks,
        ("outcome",),
    ),
    _cached(
        "cache.hit_rate",
        GAUGE,
        "ratio",
        "hits per block that was read from the live view; 0 before the first",
        lambda disk: disk.cache.blocks["hit"] / (disk.cache.blocks.total() or 1),
    ),
    Family(
        "cache.latency",
        HISTOGRAM,
        "seconds",
        "time per read of the live view: hit, miss, or partial if the cache had only some blocks",
        _cache_latency,
        ("outcome",),
    ),
    _cached(
        "cache.slots",
        GAUGE,
        "slots",
        "slots, each with room for a cache block",
        lambda disk: disk.cache.slots,
    ),
    _cached(
        "cache.used_slots",
        GAUGE,
        "slots",
        "slots that hold at least one block",
        lambda disk: disk.cache.used_slots,
    ),
    _cached(
        "cache.held_blocks",
        GAUGE,
        "blocks",
        "blocks that the cache holds",
        lambda disk: disk.cache.held_blocks,
    ),
    _cached(
        "cache.evictions",
        COUNTER,
        "slots",
        "slots whose contents another cache block replaced",
        lambda disk: disk.cache.evictions,
    ),
]
