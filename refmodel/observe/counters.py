"""Counters: what a disk did since it was opened, and what it holds now.

refmodel.observe.families names them. `refmodel stats` shows them as a table, as JSON and as
OpenMetrics text (refmodel.observe.exporters). The kit's dialogue has them flat, one name per
counter: `device.performance.writes.checkpoint`.
"""

from collections import Counter
from functools import lru_cache

from refmodel.cache.disk import CachedDisk
from refmodel.observe.families import baselines, common, log_structured
from refmodel.observe.families.family import COUNTER, GAUGE, Family
from refmodel.registry import Disk

BY_ENGINE = (
    {"log-structured": log_structured.FAMILIES}
    | dict.fromkeys(("in-place-raid5", "in-place-raid6"), baselines.IN_PLACE)
    | dict.fromkeys(("redo-vmfs", "redo-se", "redo-vsan"), baselines.REDO_LOG)
)


def families(disk: Disk) -> list[Family]:
    """Return the counter families that a disk of this engine has."""
    cache = baselines.CACHE if isinstance(disk, CachedDisk) else []
    return [*common.FAMILIES, *BY_ENGINE[disk.geometry.engine], *cache]


def counters(disk: Disk) -> dict[str, int | float]:
    """Return every counter and gauge that needs no walk over the maps, by its flat name."""
    found: dict[str, int | float] = {}
    for family in families(disk):
        if family.kind in (COUNTER, GAUGE) and not family.walks:
            found |= _flat(family, disk)
    return found


def work(disk: Disk) -> dict[str, int]:
    """Return every counter (no gauge), by its flat name.

    They can be added up over disks and openings.
    """
    found: dict[str, int] = {}
    for family in families(disk):
        if family.kind == COUNTER:
            found |= {name: int(value) for name, value in _flat(family, disk).items()}
    return found


def _flat(family: Family, disk: Disk) -> dict[str, int | float]:
    found: Counter[str] = Counter()
    for values, value in family.samples(disk):
        assert isinstance(value, int | float)
        # Counter is declared for integers; adding a ratio to it works as well.
        found[_flat_name(family.flat, family.name, family.labels, values)] += value  # type: ignore[assignment]
    return dict(sorted(found.items()))


@lru_cache(maxsize=4096)  # all disks have the same few hundred names
def _flat_name(flat: str, name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    flat = flat or ".".join([name, *(f"{{{label}}}" for label in labels)])
    return flat.format(**dict(zip(labels, values, strict=True)))
