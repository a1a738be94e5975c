"""Counters: what a disk has done since it was opened, and what it holds now. docs/counters.md names them all.

A counter's name is a path: `device.performance.writes.checkpoint` counts the writes to devices, of the performance leg, that checkpoints caused.
"""

from refmodel.disk import LogStructuredDisk


def counters(disk: LogStructuredDisk) -> dict[str, int]:
    """Every counter and its value."""
    state = disk.state
    return {
        **{f"operations.{name}": count for name, count in sorted(disk.operations.items())},
        **_devices(disk),
        "chunks.live": state.chunks.live,
        "chunks.usable": disk.geometry.usable_chunks,
        "bank.chunks": len(state.chunks.bank),
        "segments.free": state.segments.free_count,
        "segments.sealed": len(state.segments.sealed),
        "segments.dead": len(state.segments.dead),
        "segments.filled": state.segments.fillings,
        "pages.used": len(state.pages.in_use),
        "pages.free": state.pages.free_count,
        "pages.created": state.pages.created,
        "pages.freed": state.pages.freed,
        "log.used_bytes": state.log.used,
        "log.size_bytes": disk.geometry.log_bytes,
        "log.remirrored": state.log.remirrored,
        "checkpoint.number": state.checkpoint_number,
        "views.snapshots": len(state.views.names),
        "views.deleted": len(state.views.deleted),
        "repairs.performance": state.performance.repairs,
        "repairs.capacity": state.capacity.repairs,
    }


WORK = ("operations.", "device.", "repairs.", "pages.created", "pages.freed", "log.remirrored")


def work(disk: LogStructuredDisk) -> dict[str, int]:
    """The counters of what was done, which may be added up over disks and openings."""
    return {name: count for name, count in counters(disk).items() if name.startswith(WORK)}


def _devices(disk: LogStructuredDisk) -> dict[str, int]:
    found: dict[str, int] = {}
    for (leg, _), meter in disk.array.meters.items():
        for what in ("reads", "writes", "flushes", "bytes_read", "bytes_written"):
            for cause, count in sorted(getattr(meter, what).items()):
                name = f"device.{leg}.{what}.{cause}"
                found[name] = found.get(name, 0) + count
    return dict(sorted(found.items()))
