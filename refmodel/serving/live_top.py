"""What a disk does right now, second by second: the difference of two looks at the counters of the process that has it open."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from refmodel.core.errors import NotADisk
from refmodel.serving import command_socket

Counters = dict[str, Any]


def look(folder: Path) -> Counters:
    """The cheap counters of a disk that a server or a bench has open. Raises NotADisk if none answers."""
    answer = command_socket.forward(folder, ["stats", str(folder), "--json", "--cheap"], b"")
    if answer is None:
        raise NotADisk(f"nothing to watch: no server or bench has the disk at {folder} open")
    stdout, stderr, status = answer
    if status:
        raise NotADisk(stderr.decode().strip().removeprefix("refmodel: "))
    return json.loads(stdout)


def frames(folder: Path, interval: float) -> Iterator[Group]:
    """A picture of each interval, in seconds, for as long as the disk is open. Raises NotADisk if it is not."""
    before, seen = look(folder), time.monotonic()
    while True:
        time.sleep(interval)
        try:
            after, now = look(folder), time.monotonic()
        except NotADisk:
            return
        yield show(before, after, now - seen)
        before, seen = after, now


def show(before: Counters, after: Counters, seconds: float) -> Group:
    return Group(
        _operations(before, after, seconds), _devices(before, after, seconds), _state(after)
    )


def _operations(before: Counters, after: Counters, seconds: float) -> Table:
    table = _table("operation", "a second", "MiB a second", "half within", "99 % within")
    for sample in after["operations.latency"]:
        name = sample["operation"]
        count = sample["count"] - _sum(before, "operations", operation=name)
        moved = _sum(after, "operations.bytes", operation=name) - _sum(
            before, "operations.bytes", operation=name
        )
        earlier = next(
            (old["buckets"] for old in before["operations.latency"] if old["operation"] == name), []
        )
        within = [
            _microseconds(_quantile(earlier, sample["buckets"], part)) for part in (0.5, 0.99)
        ]
        table.add_row(name, f"{count / seconds:,.0f}", f"{moved / seconds / 2**20:,.1f}", *within)
    return table


def _devices(before: Counters, after: Counters, seconds: float) -> Table:
    table = _table("device I/O for", "reads a second", "writes a second", "MiB read", "MiB written")
    causes = {
        sample["cause"] for what in ("device.reads", "device.writes") for sample in after[what]
    }
    for cause in sorted(causes):
        rates = [
            (_sum(after, name, cause=cause) - _sum(before, name, cause=cause)) / seconds
            for name in (
                "device.reads",
                "device.writes",
                "device.bytes_read",
                "device.bytes_written",
            )
        ]
        if any(rates):
            table.add_row(
                cause,
                *(f"{rate:,.0f}" for rate in rates[:2]),
                *(f"{rate / 2**20:,.1f}" for rate in rates[2:]),
            )
    return table


def _state(now: Counters) -> Table:
    """What the disk's engine has of these."""
    table = _table("state", "")
    for name, (needs, line) in STATE.items():
        if needs <= now.keys():
            table.add_row(name, line(now))
    for sample in now.get("resync.lacking", ()):
        table.add_row(f"device {sample['device']}", f"lacks {sample['value']:,} stripes")
    return table


STATE: dict[str, tuple[set[str], Callable[[Counters], str]]] = {  # what to show -> the counters that it takes, and how
    "segments": ({"segments"}, lambda now: ", ".join(f"{sample['value']} {sample['state']}" for sample in now["segments"])),
    "live chunks": ({"chunks.live"}, lambda now: f"{now['chunks.live']:,} of {now['chunks.usable']:,}"),
    "bank": ({"bank.chunks"}, lambda now: f"{now['bank.chunks']:,} chunks"),
    "layers": ({"layers"}, lambda now: f"{now['layers']}, live reads through {now['layers.depth']}"),
    "durable log": ({"log.size_bytes"}, lambda now: f"{now['log.used_bytes'] / now['log.size_bytes']:.0%} used"),
    "write amplification": ({"write_amplification.cleaning"}, lambda now: f"{now['write_amplification.cleaning']:.3f} by cleaning, {now['write_amplification.devices']:.3f} at the devices"),
    "components": ({"components"}, lambda now: ", ".join(f"{sample['value']} {sample['leg']} {sample['state']}" for sample in now["components"])),
    "read cache": ({"cache.slots"}, lambda now: f"{now['cache.hit_rate']:.1%} hits, {now['cache.used_slots']:,} of {now['cache.slots']:,} slots used"),
}  # fmt: skip


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(columns[0], min_width=22)
    for column in columns[1:]:
        table.add_column(column, justify="right" if column else "left")
    return table


def _sum(counters: Counters, name: str, **labels: str) -> float:
    return sum(sample["value"] for sample in counters[name] if labels.items() <= sample.items())


def _quantile(before: list[list[float]], after: list[list[float]], part: float) -> float:
    """Upper bound of the bucket in which that part of what was counted in between lies; 0 if nothing was."""
    earlier = before[-1][1] if before else 0
    old = dict((bound, below) for bound, below in before)
    counts = [(bound, below - old.get(bound, earlier)) for bound, below in after]
    all_of_it = counts[-1][1]
    return next(bound for bound, below in counts if below >= part * all_of_it) if all_of_it else 0.0


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds else ""
