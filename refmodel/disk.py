"""The log-structured disk on real files: what users of the engine call.

    create(Path("d"), plan(blocks=1024))
    disk = open_disk(Path("d"))
    disk.write(3, bytes(4096)); disk.snapshot("s1"); disk.close()

An operation is appended to the durable log, made durable unless write-back is on, and applied to the maps in memory.
Everything else (destage, cleaning, checkpoints, reclaim) happens before it, when room is made.
"""

import fcntl
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from refmodel.cleaner import Cleaner
from refmodel.device import Device, FileDevice
from refmodel.errors import BadRequest, DiskBusy, DiskError, NoSuchSnapshot, NotADisk, OutOfRange, SnapshotExists, UnknownOutcome
from refmodel.geometry import Geometry
from refmodel.label import read_labels, write_labels
from refmodel.leg import Component, Mirror
from refmodel.log import Kind, Record
from refmodel.power import PowerSupply
from refmodel.room import Room
from refmodel.state import State

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
RECLAIM_STEPS = 1  # of background reclaim before each change


class LogStructuredDisk:
    """One open disk. Every method raises a DiskError that says what it is refused with; then nothing changed."""

    def __init__(self, lock: int, devices: list[Device], geometry: Geometry) -> None:
        self._lock = lock
        self._devices = devices
        self._broken = False
        self.geometry = geometry
        self.events: list[dict] | None = None  # what happened inside is appended here, if it is a list
        performance = [Component(device, geometry.performance_base) for device in devices]
        capacity = [Component(device, geometry.capacity_base) for device in devices]
        self.state = State(geometry, Mirror("performance", performance), Mirror("capacity", capacity), self._emit)
        self.cleaner = Cleaner(self.state.chunks, self._emit)
        self._room = Room(self.state, self.cleaner)
        self.operations: Counter[str] = Counter()

    # Operations of the contract.

    def write(self, lba: int, data: bytes) -> None:
        """Write whole blocks from `lba` on. Raises OutOfRange, NoSpace, BadRequest."""
        size = self.geometry.block_bytes
        if not data or len(data) % size:
            raise BadRequest(f"a write is a whole number of blocks of {size} bytes; this one has {len(data)} bytes")
        self._require_range(lba, len(data) // size)
        self._perform(Record(Kind.WRITE, lba, len(data) // size, data=data))

    def unmap(self, lba: int, count: int) -> None:
        """From now on `count` blocks from `lba` on read as zeroes. Raises OutOfRange, NoSpace."""
        self._require_range(lba, count)
        self._perform(Record(Kind.UNMAP, lba, count))

    def read(self, lba: int, count: int = 1, view: str | None = None) -> bytes:
        """`count` blocks from `lba` on, of a snapshot or of live. Raises OutOfRange, NoSuchSnapshot, DataLost."""
        self._require_usable()
        source = self.state.views.live if view is None else self.state.views.named(view)
        self._require_range(lba, count)
        self.operations["read"] += 1
        held = dict(source.map.items(lba, lba + count))
        if not held:
            return bytes(count * self.geometry.block_bytes)
        zero = bytes(self.geometry.block_bytes)
        return b"".join(
            self.state.chunks.read(held[at]) if at in held else zero for at in range(lba, lba + count)
        )

    def snapshot(self, name: str) -> None:
        """Raises SnapshotExists, BadRequest for a bad name, NoSpace."""
        self._require_name(name)
        if name in self.state.views.names:
            raise SnapshotExists(f"a snapshot named {name!r} exists")
        self._perform(Record(Kind.SNAPSHOT, name=name))

    def delete(self, name: str) -> None:
        """Drop a snapshot; what only it held is freed in the background. Raises NoSuchSnapshot."""
        self._require_snapshot(name)
        self._perform(Record(Kind.DELETE, name=name), refusable=False)

    def revert(self, name: str) -> None:
        """Live becomes what the snapshot is; every snapshot stays. Raises NoSuchSnapshot, NoSpace."""
        self._require_snapshot(name)
        self._perform(Record(Kind.REVERT, name=name))

    def flush(self) -> None:
        """What was acknowledged is durable."""
        self._require_usable()
        self.operations["flush"] += 1
        self.state.log.flush()

    def close(self) -> None:
        """Flush, and let go of the disk."""
        if not self._broken:
            self.state.log.flush()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the disk as it is: what a crash of the process does."""
        self._broken = True
        _release(self._lock, self._devices)
        self._lock = -1

    # What otherwise happens by itself.

    def checkpoint(self) -> None:
        self._require_usable()
        self._guarded(self.state.checkpoint)

    def clean(self) -> bool:
        """Finish reclaim, and clean until a segment has become free. Says whether there was anything to gain."""
        self._require_usable()
        return self._guarded(self._clean)

    def settle(self) -> None:
        """Finish reclaim."""
        self._require_usable()
        self._guarded(self.state.reclaim.finish)

    # How it is done.

    def _perform(self, record: Record, *, refusable: bool = True) -> None:
        self._require_usable()
        self._guarded(self._prepare, record, refusable)
        try:
            self.state.log.append(record)
            if not self.geometry.write_back:
                self.state.log.flush()
            self.state.apply(record)
            self.state.chunks.destage_full()
        except (DiskError, OSError) as error:
            self._broken = True
            raise UnknownOutcome(f"{record.kind.name.lower()} was cut short, open the disk again: {error}") from error
        self.operations[record.kind.name.lower()] += 1

    def _prepare(self, record: Record, refusable: bool) -> None:
        for _ in range(RECLAIM_STEPS):
            self.state.reclaim.step()
        self._room.make(record, refusable=refusable)

    def _clean(self) -> bool:
        reclaimed = self.state.reclaim.finish()
        if reclaimed:
            self.state.checkpoint()
        return self._room.clean() or reclaimed

    def _guarded(self, work, *arguments):
        """Do work that no operation depends on yet. A refusal passes; anything worse leaves the disk unusable."""
        try:
            return work(*arguments)
        except DiskError:
            raise
        except BaseException:
            self._broken = True
            raise

    def _require_usable(self) -> None:
        if self._broken:
            raise UnknownOutcome("the disk is closed, or an error made it unusable: open it again")

    def _require_range(self, lba: int, count: int) -> None:
        if lba < 0 or count < 1:
            raise BadRequest(f"an LBA is at least 0 and a count at least 1; these are {lba} and {count}")
        if lba + count > self.geometry.blocks:
            raise OutOfRange(f"blocks {lba} to {lba + count - 1} reach past the last one, {self.geometry.blocks - 1}")

    def _require_name(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise BadRequest(f"a snapshot's name is 1 to 64 of letters, digits, '.', '_', '-'; this is {name!r}")

    def _require_snapshot(self, name: str) -> None:
        self._require_name(name)
        if name not in self.state.views.names:
            raise NoSuchSnapshot(f"there is no snapshot named {name!r}")

    def _emit(self, event: str, **facts: object) -> None:
        if self.events is not None:
            self.events.append({"event": event, **facts})


Prepare = Callable[[LogStructuredDisk], None]


def create(path: Path, geometry: Geometry, *, sync: bool = True) -> None:
    """Make a new disk in an empty or absent folder. Raises NotADisk if the folder is in use."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NotADisk(f"{path} exists and is not an empty folder")
    path.mkdir(parents=True, exist_ok=True)
    for device_path in _device_paths(path, geometry.devices):
        FileDevice.create(device_path, geometry.device_bytes)
    devices = _open_devices(path, sync, None)
    disk = LogStructuredDisk(-1, devices, geometry)
    disk.state.checkpoint()
    write_labels(devices, geometry)
    disk.abandon()


def open_disk(
    path: Path, *, sync: bool = True, power: PowerSupply | None = None, prepare: Prepare | None = None
) -> LogStructuredDisk:
    """Open the disk in a folder: recovery, always. Raises NotADisk, DiskBusy, DataLost.

    With `power` every device is fed by that supply, so that it can be cut. `prepare` is given the disk before it
    recovers: it may listen to events or, in a test, plant a bug.
    """
    if not path.is_dir():
        raise NotADisk(f"there is no disk at {path}")
    lock = _lock(path)
    devices: list[Device] = []
    try:
        devices = _open_devices(path, sync, power)
        geometry = read_labels(devices)
        if len(devices) != geometry.devices:
            raise NotADisk(f"{path} has {len(devices)} devices; the disk has {geometry.devices}")
    except BaseException:
        _release(lock, devices)
        raise
    disk = LogStructuredDisk(lock, devices, geometry)
    try:
        if prepare is not None:
            prepare(disk)
        disk.state.recover()
    except BaseException:
        disk.abandon()
        raise
    return disk


def _lock(path: Path) -> int:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise DiskBusy(f"another process has the disk at {path} open") from None
    return lock


def _release(lock: int, devices: list[Device]) -> None:
    for device in devices:
        device.close()
    if lock >= 0:
        os.close(lock)


def _open_devices(path: Path, sync: bool, power: PowerSupply | None) -> list[Device]:
    found = sorted(path.glob("device-*"), key=lambda device: int(device.name.removeprefix("device-")))
    if not found:
        raise NotADisk(f"{path} holds no devices")
    if found != _device_paths(path, len(found)):
        raise NotADisk(f"{path} lacks a device: it has {', '.join(device.name for device in found)}")
    devices: list[Device] = [FileDevice(device, sync=sync) for device in found]
    return devices if power is None else [power.feed(device) for device in devices]


def _device_paths(path: Path, count: int) -> list[Path]:
    return [path / f"device-{index}" for index in range(count)]
