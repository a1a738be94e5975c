"""What a disk says of itself beside its reads, compared with what it reads, at every scrub.

A block that it calls unmapped must read as zeroes: clients that copy disks skip such blocks. What a
cache holds must be what is on the disk behind it.
"""

from itertools import groupby

from refmodel.cache.disk import CachedDisk, behind_cache
from refmodel.registry import Disk

LIVE = "live"


def contradictions(disk: Disk) -> list[str]:
    """Return a line per contradiction. Raises DataLost."""
    found = [line for view in (None, *disk.snapshots()) for line in _unmapped(disk, view)]
    return found + _cached(disk)


def _unmapped(disk: Disk, view: str | None) -> list[str]:
    blocks, behind = disk.geometry.blocks, behind_cache(disk)
    mapped = set(disk.mapped(0, blocks, view))
    runs = groupby(range(blocks), mapped.__contains__)
    extents = [[*run] for is_mapped, run in runs if not is_mapped]
    return [
        f"{len(lbas)} blocks from {lbas[0]} of {view or LIVE} are not mapped, and are no zeroes"
        for lbas in extents
        if any(behind.read(lbas[0], len(lbas), view))
    ]


def _cached(disk: Disk) -> list[str]:
    """Look at the cache of each host: also where the virtual machine moves to."""
    if not isinstance(disk, CachedDisk):
        return []
    return [
        f"{len(lbas)} blocks from {lbas[0]}: the cache differs from the disk"
        for flash in disk.cache.caches
        for is_held, run in groupby(range(disk.geometry.blocks), flash.hit)
        if is_held
        for lbas in [[*run]]
        if flash.read(lbas[0], len(lbas)) != disk.disk.read(lbas[0], len(lbas))
    ]
