"""Counters of disks on an array: repairs, and the states of components."""

from collections import Counter
from typing import Any

from refmodel.engine.array_disk import ArrayDisk
from refmodel.observe.families.family import COUNTER, GAUGE, Family, Samples


def _repairs(disk: ArrayDisk[Any]) -> Samples:
    return [((leg.name,), leg.repairs) for leg in (disk.array.performance, disk.array.capacity)]


def _component_states(disk: ArrayDisk[Any]) -> Samples:
    found = Counter((standing.leg, str(standing.state)) for standing in disk.status())
    return sorted(found.items())


ARRAY = [
    Family(
        "repairs",
        COUNTER,
        "copies",
        "copies that were wrong and were rewritten from good ones",
        _repairs,
        ("leg",),
    ),
    Family(
        "components",
        GAUGE,
        "components",
        "components by state",
        _component_states,
        ("leg", "state"),
    ),
]
