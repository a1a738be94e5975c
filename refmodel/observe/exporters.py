"""Exports the counters: as a table, as JSON and as OpenMetrics text."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.utils import floatToGoString

from refmodel.core.breakdown import COLUMNS, Breakdown, Share
from refmodel.core.histogram import Histogram
from refmodel.core.time_spent import PARTS
from refmodel.observe.counters import families
from refmodel.observe.families.family import BREAKDOWN, COUNTER, HISTOGRAM, Family, Value
from refmodel.registry import Disk

PREFIX = "refmodel_"
PER_SECOND = 10**9  # nanoseconds; to divide by it gives short numbers, to multiply by 1e-9 does not
# Upper bounds of the buckets in OpenMetrics, always all of them, so that no series comes and goes.
# The counted buckets have bounds there, so nothing is shown in a wrong bucket.
BOUNDS = [1 << exponent for exponent in range(25)]
NANOSECONDS = [1 << exponent for exponent in range(10, 37)]  # 1 us to 69 s
PERCENTILES = (50.0, 90.0, 99.0, 99.9)  # shown of a breakdown
SINCE = "counters.since"


def as_json(disk: Disk, *, walk: bool = True) -> dict[str, Any]:
    """Return the counters by name: a value, or a list of samples for a counter with labels.

    A sample has its labels, and `value`, or for a histogram `count`, `sum` and `buckets`; for a
    breakdown also `percentiles` and the `rows` that it is made of. Without `walk` the counters that
    need a walk over all maps are left out.
    """
    found: dict[str, Any] = {SINCE: disk.operations.since}
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
    since = datetime.fromtimestamp(disk.operations.since).astimezone()
    yield f"counted since {since:%Y-%m-%d %H:%M:%S %z}, when the disk was opened"
    for family in families(disk):
        for values, value in family.samples(disk):
            labels = zip(family.labels, values, strict=True)
            name = family.name + "".join(f" {label}={text}" for label, text in labels)
            if isinstance(value, Histogram):
                yield f"{name:<64} {_percentiles(family, value)}"
            elif isinstance(value, Breakdown):
                yield f"{name:<64} {value.count:>16,} values"
                for percent, share in shares(value):
                    yield f"{f'{name} p{percent:g}':<64} {described(share)}"
            else:
                shown = f"{value:>16,.3f}" if isinstance(value, float) else f"{value:>16,}"
                yield f"{name:<64} {shown} {family.unit}"


def shares(breakdown: Breakdown) -> Iterator[tuple[float, Share]]:
    """Yield the breakdown of each of PERCENTILES, if anything was counted."""
    for percent in PERCENTILES:
        if (share := breakdown.at(percent)) is not None:
            yield percent, share


def described(share: Share) -> str:
    """Return a latency and its parts, in microseconds."""
    parts = {name: f"{spent / 1e3:,.0f}" for name, spent in share.parts.items()}
    shown = " + ".join(f"{text} {name}" for name, text in parts.items() if text != "0")
    return (
        f"{share.latency / 1e3:>16,.0f} µs = {shown or '0'}; "
        f"{share.in_flight:.1f} in flight, group of {share.group:.1f}"
    )


def _percentiles(family: Family, histogram: Histogram) -> str:
    """Return the number of values, and upper bounds of their median and their 99th percentile."""
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


def _values(family: Family, value: Value) -> dict[str, Any]:
    if isinstance(value, int | float):
        return {"value": value}
    found: dict[str, Any] = {
        "count": value.count,
        "sum": _scaled(family, value.total),
        "buckets": [[_scaled(family, bound), below] for bound, below in value.cumulative()],
    }
    if isinstance(value, Breakdown):
        found["percentiles"] = {f"{percent:g}": _share(share) for percent, share in shares(value)}
        found["columns"], found["rows"] = COLUMNS, value.rows
    return found


def _share(share: Share) -> dict[str, Any]:
    """Return a breakdown in seconds."""
    parts = {name: spent / PER_SECOND for name, spent in share.parts.items() if spent}
    return {
        "latency": share.latency / PER_SECOND,
        "parts": parts,
        "in flight": share.in_flight,
        "group": share.group,
    }


def _scaled(family: Family, value: int) -> int | float:
    return value / PER_SECOND if family.unit == "seconds" else value


class _Collector:
    """Gives the counters of a disk to the Prometheus library."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def collect(self) -> Iterator[Metric]:
        """Yield a metric per family; for a breakdown also its parts, and those of percentiles."""
        created = self._disk.operations.since
        for family in families(self._disk):
            name, samples = _metric_name(family), [*family.samples(self._disk)]
            help, labels = f"{family.help} ({family.unit})", family.labels
            if family.kind == COUNTER:
                counter = CounterMetricFamily(name, help, labels=labels)
                for values, value in samples:
                    assert isinstance(value, int | float)
                    counter.add_metric(values, value, created=created)
                yield counter
            elif family.kind in (HISTOGRAM, BREAKDOWN):
                histogram = HistogramMetricFamily(name, help, labels=labels)
                for values, value in samples:
                    assert isinstance(value, Histogram | Breakdown)
                    buckets = [*_fixed_buckets(family, value), ("+Inf", value.count)]
                    histogram.add_metric(values, buckets, _scaled(family, value.total))
                yield histogram
            else:
                gauge = GaugeMetricFamily(name, help, labels=labels)
                for values, value in samples:
                    assert isinstance(value, int | float)
                    gauge.add_metric(values, value)
                yield gauge
            if family.kind == BREAKDOWN:
                yield from _parts(family, samples)


def _fixed_buckets(family: Family, value: Histogram | Breakdown) -> Iterator[tuple[str, int]]:
    """Yield the upper bound of each bucket, as OpenMetrics writes it, and the number of values
    at or below it."""
    counted, below = deque(value.cumulative()), 0
    for bound in NANOSECONDS if family.unit == "seconds" else BOUNDS:
        while counted and counted[0][0] <= bound:
            _, below = counted.popleft()
        yield floatToGoString(_scaled(family, bound)), below  # type: ignore[no-untyped-call]


def _parts(family: Family, samples: list[tuple[tuple[str, ...], Value]]) -> Iterator[Metric]:
    """Yield the parts of the latency: of all requests together, and about each percentile."""
    base = _metric_name(family).removesuffix("_seconds")
    labels = [*family.labels, "part"]
    waited = CounterMetricFamily(
        f"{base}_part_seconds", "its parts, summed (seconds)", None, labels
    )
    about = GaugeMetricFamily(
        f"{base}_percentile_part_seconds",
        "its parts, mean of the requests about a percentile (seconds)",
        labels=[*labels, "percentile"],
    )
    for values, value in samples:
        assert isinstance(value, Breakdown)
        for part, spent in value.spent.items():
            waited.add_metric([*values, part], spent / PER_SECOND)
        for percent, share in shares(value):
            for part in PARTS:
                about.add_metric([*values, part, f"{percent:g}"], share.parts[part] / PER_SECOND)
    yield from (waited, about)


def _metric_name(family: Family) -> str:
    unit = "_seconds" if family.unit == "seconds" else ""
    return PREFIX + family.name.replace(".", "_") + unit
