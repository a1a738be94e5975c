"""Counters of every disk: operations, and I/O of devices."""

from collections.abc import Callable, Iterator

from refmodel.cache.disk import LEG as CACHE_LEG
from refmodel.observe.families.family import (
    BREAKDOWN,
    COUNTER,
    GAUGE,
    HISTOGRAM,
    Family,
    Samples,
    single,
)
from refmodel.registry import Disk

BY_OPERATION = ("operation",)
BY_DEVICE = ("device", "leg", "cause")


def device_bytes_written(disk: Disk) -> int:
    """Return bytes written to the disk's devices.

    A read cache is not one of them: the host has it.
    """
    return sum(
        sum(meter.of("bytes_written").values())
        for (leg, _), meter in disk.meters.items()
        if leg != CACHE_LEG
    )


def _operations(disk: Disk) -> Samples:
    return [((name,), found.count) for name, found in sorted(disk.operations.nanoseconds.items())]


def _operation_bytes(disk: Disk) -> Samples:
    size = disk.geometry.block_bytes
    blocks = sorted(disk.operations.blocks.items())
    return [((name,), found.total * size) for name, found in blocks if found.total]


def _latency(disk: Disk) -> Samples:
    return [((name,), found) for name, found in sorted(disk.operations.nanoseconds.items())]


def _length(disk: Disk) -> Samples:
    return [
        ((name,), found) for name, found in sorted(disk.operations.blocks.items()) if found.total
    ]


def _serving(disk: Disk) -> Samples:
    stats = disk.operations
    found = (("group", stats.groups), ("in flight", stats.in_flight))
    return [((which,), histogram) for which, histogram in found if histogram.count]


def _requests(disk: Disk) -> Samples:
    return [((name,), found) for name, found in sorted(disk.operations.requests.items())]


def _device(name: str) -> Callable[[Disk], Samples]:
    def samples(disk: Disk) -> Iterator[tuple[tuple[str, ...], int]]:
        for (leg, device), meter in sorted(disk.meters.items()):
            for cause, count in sorted(meter.of(name).items()):
                yield (str(device), leg, cause), count

    return samples


def _device_family(name: str, unit: str, help: str) -> Family:
    flat = f"device.{{leg}}.{name}.{{cause}}"
    return Family(f"device.{name}", COUNTER, unit, help, _device(name), BY_DEVICE, flat)


def _amplification(disk: Disk) -> float:
    wanted = disk.operations.blocks_of("write") * disk.geometry.block_bytes
    return device_bytes_written(disk) / wanted if wanted else 0.0


FAMILIES = [
    Family(
        "operations", COUNTER, "operations", "operations that were done", _operations, BY_OPERATION
    ),
    Family(
        "operations.bytes",
        COUNTER,
        "bytes",
        "bytes that the operations wrote, read or unmapped",
        _operation_bytes,
        BY_OPERATION,
    ),
    Family(
        "operations.latency", HISTOGRAM, "seconds", "time per operation", _latency, BY_OPERATION
    ),
    Family("operations.length", HISTOGRAM, "blocks", "blocks per operation", _length, BY_OPERATION),
    Family(
        "serving.requests",
        HISTOGRAM,
        "requests",
        "requests of clients that a server performs together (group), and that it has taken and "
        "not answered when it begins a group (in flight), counted once per group",
        _serving,
        ("which",),
    ),
    Family(
        "serving.latency",
        BREAKDOWN,
        "seconds",
        "time per request of a server's clients, from its arrival until its answer is sent, with "
        "what it waited for",
        _requests,
        BY_OPERATION,
    ),
    _device_family("reads", "I/Os", "reads of devices"),
    _device_family("writes", "I/Os", "writes to devices"),
    _device_family("flushes", "I/Os", "flushes of devices"),
    _device_family("bytes_read", "bytes", "bytes read from devices"),
    _device_family("bytes_written", "bytes", "bytes written to devices"),
    Family(
        "write_amplification.devices",
        GAUGE,
        "ratio",
        "bytes written to devices per byte that users wrote; 0 before the first write",
        single(_amplification),
    ),
]

CAUSES = {
    "foreground": "the operation itself: the record in the durable log and its flush, the data of "
    "large writes, reads of chunks; other engines: reads of maps",
    "map-miss": "log-structured: reading a node of a map that was not in memory when it was needed",
    "journal": "in-place arrays: the journal record of a write, which closes the write hole",
    "cache": "hits and fills of a read cache, on the host's own device",
    "migrate": "copying the contents of a read cache to another host",
    "consolidate": "redo-log chains: merging one layer into another",
    "destage": "writing data from the bank to segments",
    "checkpoint": "writing tree nodes and the checkpoint slot, and their flushes",
    "clean": "reading the live chunks of a victim segment, and writing segments that have only "
    "moved chunks",
    "reclaim": "reading the maps of deleted views",
    "resync": "copying what a device missed while it was absent",
    "rebuild": "filling a new device",
    "scrub": "verifying what is stored",
    "repair": "rewriting copies that were wrong",
    "recovery": "opening the disk",
}
