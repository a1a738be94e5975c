"""The engines by name: how a disk of each is planned, made and opened.

The label of a disk names its engine, so to open a folder needs no name. A disk with a read cache
(refmodel.cache) is a disk like any other.
"""

import functools
import inspect
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from refmodel.array import label as labels
from refmodel.array.label import DEFAULT_ENGINE as DEFAULT
from refmodel.cache.disk import CachedDisk
from refmodel.cache.read_cache import ReadCache
from refmodel.cache.settings import CacheSettings
from refmodel.core.errors import BadRequest, DataLost, HostRefused
from refmodel.core.validation import require
from refmodel.engine.disk import Disk
from refmodel.engine.shape import Shape
from refmodel.inplace import disk as inplace
from refmodel.inplace.geometry import plan as plan_in_place
from refmodel.log_structured import disk as log_structured
from refmodel.log_structured.geometry import plan as plan_log_structured
from refmodel.media.enclosure import Enclosure, Folder
from refmodel.media.power_supply import PowerSupply
from refmodel.redolog import disk as redolog
from refmodel.redolog.geometry import plan as plan_redo_log

MOST_BYTES = (1 << 63) - 1  # of a file that an operating system can address

__all__ = ["DEFAULT", "ENGINES", "Disk", "Engine", "Shape", "create", "open_disk", "plan"]


class Engine(NamedTuple):
    """An engine: one line about it, and its functions."""

    what: str
    plan: Callable[..., Shape]  # takes the number of blocks, and options by name
    create: Callable[..., None]  # takes a folder and a shape; `sync`
    open: Callable[..., Disk]  # takes a folder; `sync`, `power`, `now`, `memory`, `prepare`


def _redo_log(name: str, what: str) -> Engine:
    return Engine(what, functools.partial(plan_redo_log, name), redolog.create, redolog.open_disk)


def _in_place(name: str, what: str) -> Engine:
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


def plan(engine: str, blocks: int, /, **options: Any) -> Shape:
    """Return the shape of a new disk.

    Raises BadRequest for a choice that is impossible, or an option that the engine does not have.
    """
    _, *known = inspect.signature(ENGINES[engine].plan).parameters
    for name in options:
        if name not in known:
            raise BadRequest(f"the engine {engine} has no option --{name.replace('_', '-')}")
    shape = ENGINES[engine].plan(blocks, **options)
    require(
        shape.device_bytes <= MOST_BYTES,
        f"a device of this disk would have {shape.device_bytes} bytes; it may have {MOST_BYTES}",
    )
    return shape


def create(
    path: Folder,
    shape: Shape,
    *,
    sync: bool = True,
    cache: CacheSettings | None = None,
    allocate: bool = False,
) -> None:
    """Make a new disk in an empty or absent folder, with a read cache if `cache` says which.

    With `allocate` the host keeps room for all devices from now on; otherwise files grow as they
    are written. Raises NotADisk if the folder is in use, HostRefused; then no files are left
    behind.
    """
    path = Path(path)
    fresh = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    try:
        ENGINES[shape.engine].create(path, shape, sync=sync)
        if allocate:
            with closing(Enclosure(path, sync=sync)) as enclosure:
                enclosure.allocate()
        if cache is not None:
            ReadCache(shape, path, cache).close()  # it is made at each opening: can it be?
            cache.save(path)
    except BaseException as error:
        for file in path.iterdir() if fresh and path.exists() else ():
            file.unlink()
        if isinstance(error.__cause__, HostRefused):  # refused the first checkpoint
            raise error.__cause__ from None
        raise


def open_disk(
    path: Folder,
    *,
    sync: bool = True,
    power: PowerSupply | None = None,
    now: Callable[[], float] = time.time,
    memory: int | None = None,
    prepare: Callable[[Any], None] | None = None,
) -> Disk:
    """Open the disk in a folder, whichever its engine, behind its cache if it has one.

    The arguments are those of refmodel.engine.open_disk.OpenDisk.open. `prepare` is called with the
    disk behind the cache. Raises NotADisk, DiskBusy, DataLost.
    """
    path = Path(path)
    engine = labels.engine_in(path)
    if engine not in ENGINES:
        raise DataLost(
            f"the label names the engine {engine!r}; this program has {', '.join(ENGINES)}"
        )
    disk = ENGINES[engine].open(
        path, sync=sync, power=power, now=now, memory=memory, prepare=prepare
    )
    try:
        settings = CacheSettings.load(path)
        return disk if settings is None else CachedDisk(disk, path, settings)
    except BaseException:
        disk.abandon()
        raise
