"""The counters add up: they agree with each other, and with an independent count."""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from refmodel import LogStructuredDisk, create, open_disk, plan
from refmodel.core.errors import NoSpace
from refmodel.core.histogram import Histogram
from refmodel.log_structured.scrub import scrub
from refmodel.media.device import FileDevice
from refmodel.observe import exporters
from refmodel.observe.document import document
from refmodel.observe.families import common, log_structured
from refmodel.observe.families.common import CAUSES
from refmodel.observe.families.family import BREAKDOWN, HISTOGRAM
from support.disks import block

BLOCKS, SIZE = 256, 512
Worked = tuple[LogStructuredDisk, Counter[tuple[str, str]], Counter[str]]
FAMILIES = [*common.FAMILIES, *log_structured.FAMILIES]


@pytest.fixture(scope="module")
def worked() -> Iterator[Worked]:
    """A disk with a history: writes of all lengths, snapshots, cleaning, a rebuild and a scrub.

    Also an independent count of the requests to each device, and of the user's operations.
    """
    asked: Counter[tuple[str, str]] = Counter()
    wanted: Counter[str] = Counter()
    patch = pytest.MonkeyPatch()
    with tempfile.TemporaryDirectory() as folder:
        create(
            Path(folder) / "d",
            plan(
                BLOCKS, layout="raid5-2+1", block_bytes=SIZE, segment_blocks=8, fanout=4, spares=1
            ),
            sync=False,
        )
        disk = open_disk(Path(folder) / "d", sync=False)
        for (_, device), meter in disk.array.meters.items():  # what opening the disk took
            for what in ("reads", "writes", "bytes_read", "bytes_written"):
                asked[f"device-{device}", what] += sum(meter.of(what).values())
        read, write = FileDevice.read, FileDevice.write
        base = disk.geometry.performance_base  # labels and membership before it are in no leg

        def counted_read(device: FileDevice, offset: int, length: int) -> bytes:
            if offset >= base:
                asked[device.name, "reads"] += 1
                asked[device.name, "bytes_read"] += length
            return read(device, offset, length)

        def counted_write(device: FileDevice, offset: int, data: bytes) -> None:
            if offset >= base:
                asked[device.name, "writes"] += 1
                asked[device.name, "bytes_written"] += len(data)
            write(device, offset, data)

        patch.setattr(FileDevice, "read", counted_read)
        patch.setattr(FileDevice, "write", counted_write)
        _history(disk, wanted)
        yield disk, asked, wanted
        disk.abandon()
        patch.undo()


def _history(disk: LogStructuredDisk, wanted: Counter[str]) -> None:
    choose = random.Random(5)
    for step in range(900):
        if step in (100, 200, 300, 400):
            disk.snapshot(f"s{step}")
        if step == 500:
            disk.fail(1, "degraded")
        count = choose.choice([1, 1, 1, 3, 20])
        lba = choose.randrange(BLOCKS - count)
        kind = choose.choice(["write", "write", "write", "write", "read", "unmap"])
        try:
            match kind:
                case "write":
                    disk.write(lba, block(step + 1) * count)
                case "read":
                    disk.read(lba, count)
                case "unmap":
                    disk.unmap(lba, count)
        except NoSpace:
            continue
        wanted[kind] += 1
        wanted[f"{kind} bytes"] += count * SIZE
    disk.delete("s200")
    disk.settle()
    disk.flush()
    scrub(disk)


def value(disk: LogStructuredDisk, name: str, **labels: str) -> int | float:
    """The sum of a family's samples that have the labels."""
    found: int | float | list[dict[str, Any]] = exporters.as_json(disk)[name]
    if not isinstance(found, list):
        return found
    values: list[int | float]
    values = [sample["value"] for sample in found if labels.items() <= sample.items()]
    return sum(values)


@pytest.mark.parametrize("what", ["reads", "writes", "bytes_read", "bytes_written"])
def test_device_io_by_cause_agrees_with_the_requests_to_devices(worked: Worked, what: str) -> None:
    disk, asked, _ = worked
    by_device = {name: count for (name, kind), count in asked.items() if kind == what}
    assert len(by_device) == 4
    assert by_device == {
        name: value(disk, f"device.{what}", device=name.removeprefix("device-"))
        for name in by_device
    }


def test_every_cause_is_documented_and_most_occurred(worked: Worked) -> None:
    disk, _, _ = worked
    causes = {
        sample["cause"]
        for what in ("reads", "writes")
        for sample in exporters.as_json(disk)[f"device.{what}"]
    }
    assert causes <= set(CAUSES)
    assert causes >= {
        "foreground",
        "destage",
        "checkpoint",
        "clean",
        "rebuild",
        "scrub",
        "recovery",
    }


def test_operations_agree_with_those_of_the_user(worked: Worked) -> None:
    disk, _, wanted = worked
    histograms = {
        sample["operation"]: sample for sample in exporters.as_json(disk)["operations.latency"]
    }
    lengths = {
        sample["operation"]: sample for sample in exporters.as_json(disk)["operations.length"]
    }
    for kind in ("write", "read", "unmap"):
        assert (
            value(disk, "operations", operation=kind)
            == wanted[kind]
            == histograms[kind]["count"]
            == lengths[kind]["count"]
        )
        assert (
            value(disk, "operations.bytes", operation=kind)
            == wanted[f"{kind} bytes"]
            == lengths[kind]["sum"] * SIZE
        )
        assert histograms[kind]["buckets"][-1][1] == wanted[kind]
        assert histograms[kind]["sum"] > 0
    assert value(disk, "operations", operation="snapshot") == 4


def test_live_chunks_are_those_of_the_usage_table_and_the_bank(worked: Worked) -> None:
    disk, _, _ = worked
    in_segments = sum(usage.live for usage in disk.state.segments.sealed.values())
    assert value(disk, "chunks.live") == in_segments + value(disk, "bank.chunks")


def test_space_by_view_adds_up_to_the_live_chunks(worked: Worked) -> None:
    disk, _, _ = worked
    held = {
        mba for view in disk.state.views.by_id.values() for _, mba in view.map.items(view.cursor)
    }
    assert (
        value(disk, "space.exclusive") + value(disk, "space.shared")
        == value(disk, "chunks.live")
        == len(held)
    )
    assert value(disk, "space.shared") > 0 and value(disk, "space.exclusive", view="s100") > 0


def test_segments_add_up(worked: Worked) -> None:
    disk, _, _ = worked
    assert value(disk, "segments") == disk.geometry.segments
    assert value(disk, "segments.utilisation") == value(disk, "segments", state="sealed")
    stripes = value(disk, "segments.filled") * disk.geometry.segment_bytes * 3 // 2
    rest = value(disk, "device.bytes_written", leg="capacity", cause="rebuild") + value(
        disk, "device.bytes_written", leg="capacity", cause="repair"
    )
    assert (
        0 < value(disk, "device.bytes_written", leg="capacity") - rest <= stripes
    )  # full stripes; a device that is gone gets nothing


def test_pages_add_up(worked: Worked) -> None:
    disk, _, _ = worked
    assert value(disk, "pages.of") == value(disk, "pages.used")
    opened_with = (
        value(disk, "pages.used") - value(disk, "pages.created") + value(disk, "pages.freed")
    )
    assert opened_with == 1  # the view table of a new disk
    assert 0 < value(disk, "pages.copied") < value(disk, "pages.created")
    assert 0 < value(disk, "pages.shared") <= value(disk, "pages.of", map="logical")


def test_amplification_follows_from_the_counts(worked: Worked) -> None:
    disk, _, _ = worked
    new = value(disk, "chunks.destaged") + value(disk, "chunks.placed")
    assert (
        value(disk, "write_amplification.cleaning") == (new + value(disk, "chunks.moved")) / new > 1
    )
    devices = value(disk, "device.bytes_written") / value(
        disk, "operations.bytes", operation="write"
    )
    assert value(disk, "write_amplification.devices") == devices > 1.5


def test_openmetrics_has_the_same_values(worked: Worked) -> None:
    disk, _, _ = worked
    parsed = {
        family.name: family
        for family in text_string_to_metric_families(  # type: ignore[no-untyped-call]  # of the library
            exporters.openmetrics(disk)
        )
    }
    breakdowns = sum(family.kind == BREAKDOWN for family in FAMILIES)
    assert len(parsed) == len(FAMILIES) + 2 * breakdowns  # its parts, and those of percentiles
    samples = parsed["refmodel_device_bytes_written"].samples
    written = sum(sample.value for sample in samples if sample.name.endswith("_total"))
    (created,) = {sample.value for sample in samples if sample.name.endswith("_created")}
    assert created == pytest.approx(disk.operations.since)
    assert written == value(disk, "device.bytes_written")
    latency = parsed["refmodel_operations_latency_seconds"]
    counts = {
        sample.labels["operation"]: sample.value
        for sample in latency.samples
        if sample.name.endswith("_count")
    }
    assert counts["write"] == value(disk, "operations", operation="write")


def test_the_document_is_up_to_date() -> None:
    assert (Path(__file__).parents[3] / "docs" / "counters.md").read_text() == document()


def test_the_table_has_every_family(worked: Worked) -> None:
    disk, _, _ = worked
    since, *lines = exporters.table(disk)
    assert since.startswith("counted since")
    # nothing catches up, and nothing is served
    quiet = {"resync.lacking", "serving.requests", "serving.latency"}
    assert {line.split()[0] for line in lines} == {family.name for family in FAMILIES} - quiet


def test_a_histogram_counts_every_value() -> None:
    histogram = Histogram()
    for number in (1, 2, 3, 4, 5, 1000, 1024, 1025):
        histogram.add(number)
    counted = [(1, 1), (2, 2), (4, 4), (8, 5), (1024, 7), (2048, 8)]
    assert [*histogram.cumulative()] == counted  # without those that counted nothing
    assert histogram.count == 8 and histogram.total == 3064
    assert all(family.samples for family in FAMILIES if family.kind == HISTOGRAM)
