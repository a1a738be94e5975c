"""Live rates of a disk (`refmodel top`): the difference of two readings of its counters.

The counters come from the process that has the disk open, a server or a bench.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from rich.console import Group
from rich.table import Table

from refmodel.core.breakdown import Breakdown
from refmodel.core.errors import NotADisk
from refmodel.observe.exporters import SINCE, described
from refmodel.serving import command_socket

Counters = dict[str, Any]  # as `refmodel stats --json --cheap` prints them
MIB = 2**20
DEVICE_COUNTERS = ("device.reads", "device.writes", "device.bytes_read", "device.bytes_written")


def read_counters(folder: Path) -> Counters:
    """Read the cheap counters of an open disk. Raises NotADisk if no process answers."""
    answer = command_socket.forward(folder, ["stats", str(folder), "--json", "--cheap"], b"")
    if answer is None:
        raise NotADisk(f"nothing to watch: no server or bench has the disk at {folder} open")
    if answer.status:
        raise NotADisk(answer.stderr.decode().strip().removeprefix("refmodel: "))
    return cast(Counters, json.loads(answer.stdout))


def frames(folder: Path, interval: float) -> Iterator[Group]:
    """Yield the tables of each interval (in seconds) until the disk is closed.

    Raises NotADisk if no process has the disk open.
    """
    before, began = read_counters(folder), time.monotonic()
    while True:
        time.sleep(interval)
        try:
            after, now = read_counters(folder), time.monotonic()
        except NotADisk:
            return
        yield show(before, after, now - began)
        before, began = after, now


def show(before: Counters, after: Counters, seconds: float) -> Group:
    """Return tables of what changed between two readings, `seconds` apart, and of the state."""
    return Group(
        _operations(before, after, seconds),
        *_waits(before, after),
        _devices(before, after, seconds),
        _state(after),
    )


def _operations(before: Counters, after: Counters, seconds: float) -> Table:
    table = _table("operation", "ops per s", "MiB per s", "p50 at most, µs", "p99 at most, µs")
    for sample in after["operations.latency"]:
        name = sample["operation"]
        count = sample["count"] - _sum(before, "operations", operation=name)
        moved = _sum(after, "operations.bytes", operation=name)
        moved -= _sum(before, "operations.bytes", operation=name)
        earlier: list[list[float]] = next(
            (old["buckets"] for old in before["operations.latency"] if old["operation"] == name), []
        )
        bounds = (_percentile(earlier, sample["buckets"], part) for part in (0.5, 0.99))
        shown = (f"{bound * 1e6:,.0f}" if bound else "" for bound in bounds)
        table.add_row(name, f"{count / seconds:,.0f}", f"{moved / seconds / MIB:,.1f}", *shown)
    return table


def _waits(before: Counters, after: Counters) -> list[Table]:
    """Return a table of what clients' requests waited for; none without requests."""
    table = _table("request", "what it waited for", words=True)
    for sample in after["serving.latency"]:
        name = sample["operation"]
        old = [one["rows"] for one in before["serving.latency"] if one["operation"] == name]
        counted = Breakdown(sample["rows"])
        if old and before[SINCE] == after[SINCE]:
            counted = counted.since(Breakdown(old[0]))
        for percent in (50, 99):
            if (share := counted.at(percent)) is not None:
                table.add_row(f"{name} p{percent}", described(share).strip())
    return [table] if table.row_count else []


def _devices(before: Counters, after: Counters, seconds: float) -> Table:
    table = _table(
        "cause of device I/O", "reads per s", "writes per s", "read MiB per s", "wrote MiB per s"
    )
    causes = {sample["cause"] for name in DEVICE_COUNTERS[:2] for sample in after[name]}
    for cause in sorted(causes):
        reads, writes, bytes_read, bytes_written = (
            (_sum(after, name, cause=cause) - _sum(before, name, cause=cause)) / seconds
            for name in DEVICE_COUNTERS
        )
        if reads or writes:
            ios = (f"{reads:,.0f}", f"{writes:,.0f}")
            table.add_row(cause, *ios, f"{bytes_read / MIB:,.1f}", f"{bytes_written / MIB:,.1f}")
    return table


def _state(now: Counters) -> Table:
    """Return the lines of STATE whose counters the disk's engine has."""
    table = _table("state", "", words=True)
    for name, (counter, line) in STATE.items():
        if counter in now:
            table.add_row(name, line(now))
    for sample in now.get("resync.lacking", ()):
        table.add_row(f"device {sample['device']}", f"lacks {sample['value']:,} stripes")
    return table


def _segments(now: Counters) -> str:
    return ", ".join(f"{sample['value']} {sample['state']}" for sample in now["segments"])


def _components(now: Counters) -> str:
    return ", ".join(
        f"{sample['value']} {sample['leg']} {sample['state']}" for sample in now["components"]
    )


def _amplification(now: Counters) -> str:
    cleaning, devices = now["write_amplification.cleaning"], now["write_amplification.devices"]
    return f"{cleaning:.3f} by cleaning, {devices:.3f} at the devices"


def _cache(now: Counters) -> str:
    used, slots = now["cache.used_slots"], now["cache.slots"]
    return f"{now['cache.hit_rate']:.1%} hits, {used:,} of {slots:,} slots used"


# Line of the table -> the counter that the engine must have, and the text.
STATE: dict[str, tuple[str, Callable[[Counters], str]]] = {
    "segments": ("segments", _segments),
    "live chunks": (
        "chunks.live",
        lambda now: f"{now['chunks.live']:,} of {now['chunks.usable']:,}",
    ),
    "bank": ("bank.chunks", lambda now: f"{now['bank.chunks']:,} chunks"),
    "layers": (
        "layers",
        lambda now: f"{now['layers']}, the live view reads through {now['layers.depth']}",
    ),
    "durable log": (
        "log.size_bytes",
        lambda now: f"{now['log.used_bytes'] / now['log.size_bytes']:.0%} used",
    ),
    "write amplification": ("write_amplification.cleaning", _amplification),
    "components": ("components", _components),
    "read cache": ("cache.slots", _cache),
}


def _table(*columns: str, words: bool = False) -> Table:
    """Return a table of figures, or of words."""
    table = Table(box=None, pad_edge=False)
    table.add_column(columns[0], min_width=19)
    for column in columns[1:]:
        table.add_column(column, justify="left" if words else "right")
    return table


def _sum(counters: Counters, name: str, **labels: str) -> float:
    """Return the sum of the samples of a counter that have these labels."""
    samples: list[dict[str, Any]] = counters[name]
    found = (sample["value"] for sample in samples if labels.items() <= sample.items())
    return cast(float, sum(found))


def _percentile(before: list[list[float]], after: list[list[float]], part: float) -> float:
    """Return an upper bound of a percentile of what was counted between two readings of a
    histogram.

    Buckets are pairs: upper bound, and number of values at or below it. `part` is 0 to 1. Returns
    the bound of the bucket that the percentile lies in; 0 if nothing was counted.
    """
    counts = [
        (bound, below - max((old for at, old in before if at <= bound), default=0))
        for bound, below in after
    ]
    total = counts[-1][1]
    return next(bound for bound, below in counts if below >= part * total) if total else 0.0
