"""Exports the counters: as a table, as JSON and as OpenMetrics text."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest

from refmodel.core.histogram import Histogram
from refmodel.observe.counters import families
from refmodel.observe.families.family import COUNTER, HISTOGRAM, Family
from refmodel.registry import Disk

PREFIX = "refmodel_"
NANO = 1e-9


def as_json(disk: Disk, *, walk: bool = True) -> dict[str, Any]:
    """Return the counters by name: a value, or a list of samples for a counter with labels.

    A sample has its labels, and `value`, or for a histogram `count`, `sum` and `buckets`. Without
    `walk` the counters that need a walk over all maps are left out.
    """
    found: dict[str, Any] = {}
    for family in families(disk):
        if family.walks and not walk:
            continue
        samples = [
            dict(zip(family.labels, values, strict=True)) | _values(family, value)
            for values, value in family.samples(disk)
        ]
        found[family.name] = samples if family.labels else samples[0]["value"]
    return found


def openmetrics(disk: Disk) -> str:
    """Return the counters as OpenMetrics text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(disk))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # of the library
    return text.decode()


def table(disk: Disk) -> Iterator[str]:
    """Yield a line per sample, for a person: name, labels, value, unit."""
    for family in families(disk):
        for values, value in family.samples(disk):
            labels = zip(family.labels, values, strict=True)
            name = family.name + "".join(f" {label}={text}" for label, text in labels)
            if isinstance(value, Histogram):
                yield f"{name:<64} {_percentiles(family, value)}"
            else:
                shown = f"{value:>16,.3f}" if isinstance(value, float) else f"{value:>16,}"
                yield f"{name:<64} {shown} {family.unit}"


def _percentiles(family: Family, histogram: Histogram) -> str:
    """The number of values, and upper bounds of their median and their 99th percentile."""
    unit, scale = ("µs", 1e-3) if family.unit == "seconds" else (family.unit, 1)
    found = [f"{histogram.count:>16,} values"]
    for name, part in (("p50", 0.5), ("p99", 0.99)):
        if histogram.count:
            bound = next(
                bound for bound, below in histogram.cumulative() if below >= part * histogram.count
            )
            shown = f"{bound * scale:,.3f}".rstrip("0").rstrip(".")
            found.append(f"{name} at most {shown} {unit}")
    return ", ".join(found)


def _values(family: Family, value: int | float | Histogram) -> dict[str, Any]:
    if not isinstance(value, Histogram):
        return {"value": value}
    return {
        "count": value.count,
        "sum": _scaled(family, value.total),
        "buckets": [[_scaled(family, bound), below] for bound, below in value.cumulative()],
    }


def _scaled(family: Family, value: int) -> int | float:
    return value * NANO if family.unit == "seconds" else value


class _Collector:
    """Gives the counters of a disk to the Prometheus library."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def collect(self) -> Iterator[Metric]:
        """Yield a metric per family."""
        for family in families(self._disk):
            name = (
                PREFIX
                + family.name.replace(".", "_")
                + ("_seconds" if family.unit == "seconds" else "")
            )
            kind = {COUNTER: CounterMetricFamily, HISTOGRAM: HistogramMetricFamily}.get(
                family.kind, GaugeMetricFamily
            )
            metric = kind(name, f"{family.help} ({family.unit})", labels=family.labels)
            for values, value in family.samples(self._disk):
                if isinstance(value, Histogram):
                    buckets = [
                        (str(_scaled(family, bound)), below) for bound, below in value.cumulative()
                    ]
                    metric.add_metric(
                        values, [*buckets, ("+Inf", value.count)], _scaled(family, value.total)
                    )
                else:
                    metric.add_metric(values, value)
            yield metric
