"""The engines by name: how the disk of each is planned, made and opened, and what every open disk can be asked.

The label of a disk says which engine's it is, so whoever opens a folder needs no name. A disk with a read cache (refmodel.cache) is a disk.
"""

import functools
import inspect
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from refmodel.array import label as labels
from refmodel.array.component import Meter
from refmodel.array.label import Shape
from refmodel.cache.disk import CachedDisk
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest
from refmodel.core.operation_stats import OperationStats
from refmodel.inplace import disk as inplace
from refmodel.inplace.geometry import InPlaceGeometry
from refmodel.inplace.geometry import plan as plan_in_place
from refmodel.log_structured import disk as log_structured
from refmodel.log_structured.geometry import Geometry
from refmodel.log_structured.geometry import plan as plan_log_structured
from refmodel.media.power_supply import PowerSupply
from refmodel.redolog import disk as redolog
from refmodel.redolog.geometry import RedoLogGeometry
from refmodel.redolog.geometry import plan as plan_redo_log

DEFAULT = Geometry.engine


class Disk(Protocol):
    """One open disk. Every method raises a DiskError that says what it is refused with; then nothing changed.

    What `geometry.capabilities` leaves out is refused as Unsupported.
    """

    geometry: Shape
    operations: OperationStats  # what users had it do
    events: list[dict] | None  # what happened inside is appended here, if it is a list

    @property
    def meters(
        self,
    ) -> dict[tuple[str, int], Meter]: ...  # what was done to devices, by leg and device

    @property
    def from_memory(
        self,
    ) -> Counter[
        str
    ]: ...  # blocks that were read with no device I/O, though they hold data, by cause

    def write(self, lba: int, data: bytes) -> None: ...

    def write_many(self, writes: list[tuple[int, bytes]]) -> None: ...

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes: ...

    def unmap(self, lba: int, count: int) -> None: ...

    def mapped(self, lba: int, count: int, view: str | None = None) -> list[int]: ...

    def snapshots(self) -> list[str]: ...

    def identity(self, name: str) -> int: ...

    def snapshot(self, name: str) -> None: ...

    def delete(self, name: str) -> None: ...

    def revert(self, name: str) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...

    def checkpoint(self) -> None: ...

    def clean(self) -> bool: ...

    def settle(self) -> None: ...

    def background(self) -> bool: ...


class Engine(NamedTuple):
    what: str
    plan: Callable[..., Shape]  # blocks, and options by name
    create: Callable[..., None]  # folder, shape; sync
    open: Callable[..., Disk]  # folder; sync, power, now, prepare


def _redo_log(name: str, what: str) -> Engine:
    labels.GEOMETRIES[name] = RedoLogGeometry
    return Engine(what, functools.partial(plan_redo_log, name), redolog.create, redolog.open_disk)


def _in_place(name: str, what: str) -> Engine:
    labels.GEOMETRIES[name] = InPlaceGeometry
    return Engine(what, functools.partial(plan_in_place, name), inplace.create, inplace.open_disk)


ENGINES = {
    DEFAULT: Engine(
        "a log of full stripes, snapshots as shared trees",
        plan_log_structured,
        log_structured.create,
        log_structured.open_disk,
    ),
    "redo-vmfs": _redo_log(
        "redo-vmfs",
        "a chain of redo logs as VMFSsparse: 512-byte grains, grain tables on the device",
    ),
    "redo-se": _redo_log("redo-se", "a chain of redo logs as SEsparse: 4 KiB grains, unmap"),
    "redo-vsan": _redo_log(
        "redo-vsan", "a chain of redo logs as vSANsparse: every grain table in memory"
    ),
    "in-place-raid5": _in_place(
        "in-place-raid5", "blocks in place on RAID-5: a small write is 4 device I/Os"
    ),
    "in-place-raid6": _in_place(
        "in-place-raid6", "blocks in place on RAID-6: a small write is 6 device I/Os"
    ),
}


def plan(engine: str, blocks: int, **options: Any) -> Shape:
    """The shape of a new disk. Raises BadRequest for what cannot work, or an option that the engine does not have."""
    known = inspect.signature(ENGINES[engine].plan).parameters
    for name in options:
        if name not in known:
            raise BadRequest(f"the engine {engine} has no option --{name.replace('_', '-')}")
    return ENGINES[engine].plan(blocks, **options)


def create(
    path: Path, shape: Shape, *, sync: bool = True, cache: CacheSettings | None = None
) -> None:
    """Make a new disk in an empty or absent folder, with a read cache if there is to be one. Raises NotADisk if the folder is in use."""
    ENGINES[shape.engine].create(path, shape, sync=sync)
    if cache is not None:
        cache.save(path)


def open_disk(
    path: Path,
    *,
    sync: bool = True,
    power: PowerSupply | None = None,
    now: Callable[[], float] = time.time,
    prepare: Callable[[Any], None] | None = None,
) -> Disk:
    """Open the disk in a folder, whichever engine's it is, behind its cache if it has one: as refmodel.engine.open_disk.OpenDisk.open."""
    disk = ENGINES[labels.engine_in(path)].open(
        path, sync=sync, power=power, now=now, prepare=prepare
    )
    try:
        settings = CacheSettings.load(path)
        return disk if settings is None else CachedDisk(disk, path, settings)
    except BaseException:
        disk.abandon()
        raise
