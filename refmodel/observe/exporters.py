"""The counters (refmodel.observe.counters) as a table, as JSON and as OpenMetrics text."""

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
from refmodel.observe.counters import COUNTER, HISTOGRAM, Family, families
from refmodel.registry import Disk

PREFIX = "refmodel_"
NANO = 1e-9


def as_json(disk: Disk, *, walk: bool = True) -> dict[str, Any]:
    """Family -> value, or a list of samples: the labels, and `value` or `count`, `sum` and `buckets`. Without `walk` only what is cheap."""
    found: dict[str, Any] = {}
    for family in families(disk):
        if family.walks and not walk:
            continue
        samples = [
            dict(zip(family.labels, values)) | _values(family, value)
            for values, value in family.samples(disk)
        ]
        found[family.name] = samples if family.labels else samples[0]["value"]
    return found


def openmetrics(disk: Disk) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(disk))
    return generate_latest(registry).decode()


def table(disk: Disk) -> Iterator[str]:
    """A line a sample."""
    for family in families(disk):
        for values, value in family.samples(disk):
            name = family.name + "".join(
                f" {label}={text}" for label, text in zip(family.labels, values)
            )
            if isinstance(value, Histogram):
                shown = f"{value.count:>16,} in all: " + ", ".join(
                    f"{_share(value, part)} {part:.0%}" for part in (0.5, 0.99) if value.count
                )
                yield f"{name:<64} {shown}, by {'nanoseconds' if family.unit == 'seconds' else family.unit}"
            else:
                yield (
                    f"{name:<64} {value:>16,.3f} {family.unit}"
                    if isinstance(value, float)
                    else f"{name:<64} {value:>16,} {family.unit}"
                )


def _share(histogram: Histogram, part: float) -> str:
    bound = next(
        bound for bound, below in histogram.cumulative() if below >= part * histogram.count
    )
    return f"at most {bound:,} in"


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
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def collect(self) -> Iterator[Metric]:
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
