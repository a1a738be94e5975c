"""Workload profiles: reproducible by seed, documented; clients count stalls for all requests."""

import random
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from refmodel.array.component import Meter
from refmodel.bench import runner
from refmodel.bench.clients import Clients, RepairClock, Stopwatch
from refmodel.bench.workloads.document import document
from refmodel.bench.workloads.fio_jobs import job_file
from refmodel.bench.workloads.profiles import PROFILES
from refmodel.bench.workloads.workload import Access, Phase, Stretch, digest, requests, stretches
from refmodel.registry import Disk

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PROFILES)
def test_the_same_seed_gives_the_same_operations(name: str) -> None:
    first, again, other = (list(stretches(PROFILES[name], 2048, 20, seed)) for seed in (1, 1, 2))
    assert digest(first) == digest(again)
    draws = any(0 < stretch.access.reads < 1 or stretch.access.random for stretch in first)
    assert draws == (digest(first) != digest(other))
    assert all(
        lba >= 0 and lba + count <= 2048 for stretch in first for _, lba, count in stretch.requests
    )


def test_the_digest_depends_on_the_order_and_the_actions() -> None:
    access = Access(0, 1)
    asked = list(requests(access, 64, 10, random.Random(1)))
    phase = Phase("run", 1)
    runs = [
        [Stretch(phase, access, asked, {})],
        [Stretch(phase, access, asked, {3: ["snapshot"]})],
        [Stretch(phase, access, asked, {4: ["snapshot"]})],
        [Stretch(phase, access, asked[::-1], {})],
    ]
    assert len({digest(run) for run in runs}) == 4


def test_requests_have_the_declared_mix() -> None:
    mixed = list(requests(Access(0.7, 2), 4096, 4000, random.Random(1)))
    assert sum(request.read for request in mixed) == pytest.approx(2800, abs=100)
    in_order = [
        lba for _, lba, _ in requests(Access(1, 8, random=0, span=0.5), 128, 16, random.Random(1))
    ]
    assert in_order == [*range(0, 64, 8)] * 2
    skewed = [lba for _, lba, _ in requests(Access(1, 1, skew=0.9), 1000, 5000, random.Random(1))]
    assert sum(sorted((skewed.count(lba) for lba in set(skewed)), reverse=True)[:100]) > 0.5 * 5000


def test_actions_are_spread_over_their_phase() -> None:
    (_, snapshots, *_) = stretches(PROFILES["hpe-8k-50"], 2048, 50, 1)
    assert snapshots.actions == {number: ["snapshot"] for number in range(0, 100, 10)}


def test_the_document_and_the_job_files_are_up_to_date() -> None:
    assert (ROOT / "docs/workloads.md").read_text() == document(), (
        "python -m refmodel.bench.workloads.document > docs/workloads.md"
    )
    files = {path.stem: path.read_text() for path in (ROOT / "workloads").glob("*.fio")}
    assert files == {name: job_file(name) for name in PROFILES}, (
        "python -m refmodel.bench.workloads.fio_jobs workloads"
    )


class Stalling:
    """A disk that takes 1 ms per request, and 50 ms for the tenth."""

    def __init__(self, watch: "SimulatedTime") -> None:
        self.meters: dict[tuple[str, int], Meter] = {}
        self.from_memory: Counter[str] = Counter()
        self._watch, self._asked = watch, 0

    def write(self, lba: int, data: bytes) -> None:
        self._asked += 1
        self._watch.seconds += 0.05 if self._asked == 10 else 0.001

    def background(self) -> bool:
        return False


class SimulatedTime(Stopwatch):
    """A clock that only the disk and the clients move."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.read = self.nanoseconds

    def nanoseconds(self) -> int:
        return round(1e9 * self.seconds)

    def wait_until(self, moment: float) -> None:
        self.seconds = max(self.seconds, moment)


def test_a_stall_counts_for_every_request_that_it_delays() -> None:
    """At 500 requests per second, 25 are due during a stall of 50 ms.

    About as many are late afterwards, while the queue empties.
    """
    watch, access = SimulatedTime(), Access(0, 1, in_flight=1)
    asked = list(requests(access, 64, 200, random.Random(1)))
    clients = Clients(cast(Disk, Stalling(watch)), lambda: None, watch, RepairClock())
    stretch = Stretch(Phase("run", 1, rate=0.5), access, asked, {})
    (window,) = clients.run(stretch, 500, 1)
    late = [latency for latency in window.latencies if latency > 0.0015]
    assert len(late) == pytest.approx(49, abs=1) and max(late) == pytest.approx(0.05)
    assert window.seconds == pytest.approx(0.399)
    waits = clients.waits["run"]
    assert waits.count == 200 and waits.total == pytest.approx(
        1e9 * sum(window.latencies), rel=1e-6
    )
    worst, late_one = waits.at(100), waits.at(90)
    assert worst is not None and late_one is not None
    assert worst.parts["engine"] > 50e6 / 4  # the mean of the stalled one and those behind it
    assert late_one.parts["turn"] > 0.8 * late_one.latency  # what it waited for was the stall


def test_failed_devices_are_rebuilt_while_clients_go_on() -> None:
    result = runner.run("netone-steady", scale=0.05)
    assert (
        result.part("timer: rebuild").devices.ios["rebuild"] > 0
        and result.part("dead: rebuild").devices.ios["rebuild"] > 0
    )
    assert result.part("path back").devices.ios["resync"] > 0
    before = ("maximum", "steady", "hold")
    assert not any(
        result.part(name).devices.ios[cause] for name in before for cause in ("resync", "rebuild")
    )


def test_a_cache_as_large_as_the_disk_answers_every_read() -> None:
    none, all_of_it = (
        runner.run("vfrc-sizing", scale=0.02, cache_bytes=size) for size in (0, 64 * 1024 * 1024)
    )
    assert none.part("run").hit_rate == 0
    assert all_of_it.part("run").hit_rate == 1
