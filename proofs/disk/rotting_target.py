"""The proved disk on several devices, of which one rots: between two requests sectors of its file
change. The power fails inside operations too.

conformance run --target python:proofs.disk.rotting_target:open_mirrors --traces 50
conformance run --target python:proofs.disk.rotting_target:open_raid6 --traces 50

The target says that it tolerates one failure less than the disk does: where the other devices fail,
the one that rots is still needed, and too many pieces of a block would be unreadable. A disk that
tolerates one failure is run without failures of devices.
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance.targets.base import Message

sys.path.insert(0, str(Path(__file__).parent))
from cutting_target import LEGS, PROGRAM, CuttingTarget  # noqa: E402

SECTOR = 512
MOST_SECTORS = 8  # that rot at a time


class RottingTarget(CuttingTarget):
    """Before one request of two, up to eight sectors of one file change, or many become zeroes."""

    def __init__(self, layout: str, options: dict[str, Any]) -> None:
        self._random = random.Random(layout + repr(sorted(options.items())))
        self._rotten: int | None = None  # none until it is known how many devices there are
        self._home = tempfile.TemporaryDirectory(dir=_shared())
        trees = " --trees" if options.get("trees") else ""
        records = options.get("records", 4)
        folder = f"--folder {self._home.name}"
        super().__init__(f"{PROGRAM} adapter {layout}{trees} --log-records {records} {folder}")
        self._rotten = self._random.randrange(self.hello["devices"])
        left = self.hello.pop("tolerates") - 1
        if left:
            self.hello["tolerates"] = left
        else:
            del self.hello["devices"]
            self.hello["capabilities"].remove("device")

    def request(self, message: Message) -> Message:
        if self._rotten is not None and self._random.random() < 0.5:
            for path in Path(self._home.name).glob(f"*/device-{self._rotten}*"):
                self._rot(path)
        return super().request(message)

    def close(self) -> None:
        super().close()
        self._home.cleanup()

    def _rot(self, path: Path) -> None:
        """Change some sectors of the file: a bit, or all bytes, or zeroes from there on."""
        with path.open("r+b") as file:
            sectors = os.fstat(file.fileno()).st_size // SECTOR
            for _ in range(self._random.randint(1, MOST_SECTORS)):
                at = self._random.randrange(sectors) * SECTOR
                file.seek(at)
                sector = bytearray(file.read(SECTOR))
                kind = self._random.randrange(8)
                if kind == 0:
                    sector = bytearray((sectors * SECTOR - at) // 2 // SECTOR * SECTOR)
                elif kind < 4:
                    sector = bytearray(self._random.randbytes(SECTOR))
                else:
                    sector[self._random.randrange(SECTOR)] ^= 1 << self._random.randrange(8)
                file.seek(at)
                file.write(sector)


def _shared() -> str | None:
    return "/dev/shm" if Path("/dev/shm").exists() else None


def open_mirrors(options: dict[str, Any]) -> RottingTarget:
    """Start it on mirrors. `mirrors` is their number."""
    return RottingTarget(f"--mirrors {options.get('mirrors', 2)}", options)


open_mirrors.knobs = {"mirrors": [2, 3], **LEGS}  # type: ignore[attr-defined]


def open_raid5(options: dict[str, Any]) -> RottingTarget:
    """Start it on devices with parity, of which one may fail. `devices` is their number."""
    return RottingTarget(f"--raid5 {options.get('devices', 3)}", options)


open_raid5.knobs = {"devices": [3, 4, 6], **LEGS}  # type: ignore[attr-defined]


def open_raid6(options: dict[str, Any]) -> RottingTarget:
    """Start it on devices with parity, of which two may fail. `devices` is their number."""
    return RottingTarget(f"--raid6 {options.get('devices', 4)}", options)


open_raid6.knobs = {"devices": [4, 5, 6], **LEGS}  # type: ignore[attr-defined]
