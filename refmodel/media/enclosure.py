"""The enclosure of a disk: a folder with one file per device.

Devices can be pulled out and inserted again. A device that was pulled keeps its content, under
another name, until it is inserted or a new device takes its place.
"""

import fcntl
import os
import re
from pathlib import Path

from refmodel.core.errors import DiskBusy, NotADisk
from refmodel.media.device import Device, FileDevice
from refmodel.media.power_supply import PowerSupply

NAME = re.compile(r"device-(\d+)")
WITNESS = "witness"
PULLED = ".pulled"

Folder = str | os.PathLike[str]  # the folder of a disk, as callers may name it


class Enclosure:
    """The devices in a folder, which this process has to itself.

    Without `sync` a flush does not wait for the medium. With `power` every device is fed by that
    supply, so that it can be cut.
    """

    def __init__(
        self, path: Folder, *, sync: bool = True, power: PowerSupply | None = None
    ) -> None:
        path = Path(path)
        if not path.is_dir():
            raise NotADisk(f"there is no disk at {path}")
        self.path = path
        self._sync = sync
        self._power = power
        self._open: dict[str, Device] = {}
        self._lock = _lock(path)

    @staticmethod
    def build(path: Folder, devices: int, device_bytes: int, witness_bytes: int) -> None:
        """Put new, all-zero devices into an empty or absent folder.

        With 0 `witness_bytes` there is no witness. Raises NotADisk if the folder is in use,
        HostRefused; then no files are left behind.
        """
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise NotADisk(f"{path} exists and is not an empty folder")
        path.mkdir(parents=True, exist_ok=True)
        sizes = {_name(index): device_bytes for index in range(devices)}
        if witness_bytes:
            sizes[WITNESS] = witness_bytes
        made: list[Path] = []
        try:
            for name, size in sizes.items():
                FileDevice.create(path / name, size)
                made.append(path / name)
        except BaseException:
            for file in made:
                file.unlink()
            raise

    def allocate(self) -> None:
        """Have the host keep room for all devices, so that it cannot refuse a write later.

        Raises HostFull, OSError.
        """
        for index in self.present():
            size = (self.path / _name(index)).stat().st_size
            self.device(index).allocate(0, size)

    def present(self) -> list[int]:
        """Return the numbers of the devices that are present, in ascending order."""
        return self._numbers("")

    def pulled(self) -> list[int]:
        """Return the numbers of the devices that were pulled, in ascending order."""
        return self._numbers(PULLED)

    def device(self, index: int) -> Device:
        """Return the device with a number. Raises FileNotFoundError if it is not present."""
        return self._opened(_name(index))

    def witness(self) -> Device | None:
        """Return the witness, the small device that decides which of two halves is current.

        None if there is none. One whose file was removed while it is open is none, either.
        """
        return self._opened(WITNESS) if self.has_witness() else None

    def has_witness(self) -> bool:
        """Return whether the file of the witness is there."""
        return (self.path / WITNESS).exists()

    def renew_witness(self, size: int) -> Device:
        """Make a new, all-zero witness of `size` bytes where its file is gone, and return it."""
        self._forget(WITNESS)
        FileDevice.create(self.path / WITNESS, size)
        return self._opened(WITNESS)

    def pull(self, index: int) -> None:
        """Pull a device out, if it is present. It keeps everything that was written to it."""
        name = _name(index)
        self._forget(name)
        if (self.path / name).exists():
            os.replace(self.path / name, self.path / (name + PULLED))

    def insert(self, index: int) -> bool:
        """Insert a device that was pulled. Returns whether there was one."""
        pulled = self.path / (_name(index) + PULLED)
        if not pulled.exists():
            return False
        os.replace(pulled, self.path / _name(index))
        return True

    def renew(self, index: int, size: int) -> Device:
        """Replace a device by a new, all-zero one of `size` bytes, and return it."""
        self.pull(index)
        (self.path / (_name(index) + PULLED)).unlink(missing_ok=True)
        FileDevice.create(self.path / _name(index), size)
        return self.device(index)

    def close(self) -> None:
        """Close all devices, and let other processes use the folder."""
        for device in self._open.values():
            device.close()
        self._open.clear()
        lock, self._lock = self._lock, -1  # closed once, also if Ctrl-C interrupts it
        if lock >= 0:
            os.close(lock)

    def _numbers(self, suffix: str) -> list[int]:
        matches = (
            NAME.fullmatch(file.name.removesuffix(suffix))
            for file in self.path.iterdir()
            if file.name.endswith(suffix)
        )
        return sorted(int(match[1]) for match in matches if match)

    def _forget(self, name: str) -> None:
        """Close a device, if it is open: its file goes away, or is gone already."""
        if (device := self._open.pop(name, None)) is not None:
            device.close()
        if self._power is not None:
            self._power.forget(name)

    def _opened(self, name: str) -> Device:
        if name not in self._open:
            device: Device = FileDevice(self.path / name, sync=self._sync)
            self._open[name] = device if self._power is None else self._power.feed(device)
        return self._open[name]


def _name(index: int) -> str:
    return f"device-{index}"


def _lock(path: Path) -> int:
    """Return a lock on the folder, as a file descriptor.

    Raises DiskBusy if another process has it.
    """
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise DiskBusy(path) from None
    return lock
