"""OpenMetrics text: a scrape has the same series as the one before."""

from collections.abc import Callable

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from refmodel import LogStructuredDisk
from refmodel.core.breakdown import Breakdown
from refmodel.core.time_spent import PARTS
from refmodel.observe import exporters
from support.disks import block


def buckets(disk: LogStructuredDisk, name: str) -> list[tuple[str, int]]:
    """The buckets of writes in OpenMetrics, in their order: upper bound, number of values."""
    return [
        (sample.labels["le"], int(sample.value))
        for family in text_string_to_metric_families(  # type: ignore[no-untyped-call]
            exporters.openmetrics(disk)
        )
        for sample in family.samples
        if sample.name == f"refmodel_{name}_bucket" and sample.labels["operation"] == "write"
    ]


def test_a_histogram_has_the_same_buckets_in_every_scrape(
    make: Callable[..., LogStructuredDisk],
) -> None:
    disk = make(64)
    disk.write(3, block(1) * 5)
    nothing = [0] * len(PARTS)
    requests = disk.operations.requests["write"] = Breakdown()
    scrapes = []
    for nanoseconds in (63_487, 1_000_000, 10**12):
        requests.add(nothing, [nanoseconds, *nothing[1:]], 1, 1, 1)
        scrapes.append(buckets(disk, "serving_latency_seconds"))
    bounds = [bound for bound, _ in scrapes[0]]
    assert all([bound for bound, _ in scrape] == bounds for scrape in scrapes)
    assert bounds == sorted(bounds, key=float) and bounds[-1] == "+Inf"
    assert all(len(bound) <= len("17.179869184") for bound in bounds), bounds
    counts = dict(scrapes[-1])
    assert (counts["3.2768e-05"], counts["6.5536e-05"], counts["0.001048576"]) == (0, 1, 2)
    assert [*counts.values()][-2:] == [2, 3]
    lengths = buckets(disk, "operations_length")
    assert lengths[0][0] == "1.0" and lengths[-1][0] == "+Inf"
    assert [count for _, count in lengths] == [0, 0, 0] + (len(lengths) - 3) * [1]
