"""A counter family: one thing that is counted, with a sample for each value of its labels."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from refmodel.core.breakdown import Breakdown
from refmodel.core.histogram import Histogram

Value = int | float | Histogram | Breakdown
Samples = Iterable[tuple[tuple[str, ...], Value]]  # values of the labels, and of the counter
COUNTER, GAUGE, HISTOGRAM, BREAKDOWN = "counter", "gauge", "histogram", "breakdown"


D = TypeVar("D")  # an open disk


class Family(NamedTuple):
    """One thing that is counted. Counters only grow while the disk is open, gauges may shrink."""

    name: str
    kind: str  # COUNTER, GAUGE, HISTOGRAM or BREAKDOWN
    unit: str
    help: str
    samples: Callable[[Any], Samples]  # takes an open disk whose engine has the family
    labels: tuple[str, ...] = ()
    flat: str = ""  # name in the kit's dialogue, labels in braces; labels left out are added up
    walks: bool = False  # it needs a walk over all maps, so it is read only when asked for


def single(get: Callable[[D], Value]) -> Callable[[D], Samples]:
    """Return the samples of a family without labels."""
    return lambda disk: [((), get(disk))]
