"""Faults of the media that a request begins and another one ends.

`fail` with a `fault` begins it on a device, `return` or `replace` ends it. What the device holds
wrong by then is repaired by the next `settle`, which scrubs the disk. Until then the device counts
as failed: beside it no more devices fail than the layout tolerates.
"""

from typing import Any

from refmodel.adapter.dialogue import Message, integer
from refmodel.adapter.operations import scrubbed
from refmodel.array.audit import unrepaired
from refmodel.array.member import ACTIVE
from refmodel.cache.disk import behind_cache
from refmodel.core.errors import BadRequest
from refmodel.engine.array_disk import ArrayDisk
from refmodel.log_structured.geometry import Geometry
from refmodel.media.faults import FAULTS, FaultySupply
from refmodel.registry import Disk, Shape

ON_REQUEST = "on-request"
VANISHING = "vanishing-device"


def tolerated(shape: Shape) -> list[str]:
    """Return the faults of one device that a disk tolerates; without checksums only its absence."""
    if "device" not in shape.capabilities:
        return []
    return [*FAULTS] if isinstance(shape, Geometry) else [VANISHING]


class RequestedFaults:
    """The faults of the devices of one disk, which `supply` feeds."""

    def __init__(self, supply: FaultySupply, shape: Shape) -> None:
        self._supply = supply
        self._begins = tolerated(shape)
        self._tolerates = shape.m
        self._faulty: set[int] = set()  # the devices that have a fault now
        self.unsound: set[int] = set()  # those, and the ones not repaired since
        self._back: set[int] = set()  # those of the latter that have to be present

    def perform(self, disk: Disk, message: Message) -> Message | None:
        """Perform a request; return its answer, or None if it is left to the engine.

        Raises BadRequest, and what the engine raises.
        """
        array_disk = behind_cache(disk)
        if not isinstance(array_disk, ArrayDisk):
            return None
        match message.get("op"):
            case "fail":
                return self._fail(array_disk, integer(message, "device"), message.get("fault"))
            case "return" | "replace" if message.get("device") in self._faulty:
                return self._end(array_disk, message["device"], message["op"] == "replace")
            case "settle" if self.unsound - self._faulty:
                for device in sorted(self._back):
                    self._bring_back(array_disk, device)
                disk.settle()
                problems, _ = scrubbed(array_disk)
                wrong_again = [*unrepaired(array_disk.array)] if self._faulty else []
                problems = [line for line in problems if line not in wrong_again]
                self.unsound &= self._faulty | _gone(array_disk)
                self._back &= self.unsound
                return {"ok": True, "problems": problems}
        return None

    def _fail(self, disk: ArrayDisk[Any], device: int, fault: Any) -> Message | None:
        gone = _gone(disk)
        failed = len(gone | self.unsound | {device})
        if fault is not None and fault not in self._begins:
            raise BadRequest(f"a device cannot have the fault {fault!r}")
        if (self.unsound or fault) and failed > self._tolerates:
            raise BadRequest(
                f"with device {device} more devices would be faulty or gone than are tolerated"
            )
        if fault is None:
            if device in self._back:
                self._bring_back(disk, device)
                self._back.remove(device)
            return None
        if device in gone or disk.array.roster.member(device) is None:
            raise BadRequest(f"device {device} is not active")
        self._supply.begin(device, fault)
        self._faulty.add(device)
        self.unsound.add(device)
        self._back.discard(device)
        return {"ok": True}

    def _end(self, disk: ArrayDisk[Any], device: int, replaced: bool) -> Message:
        """End the fault of a device, which the engine may have given up meanwhile."""
        self._supply.end(device)
        self._faulty.remove(device)
        if not replaced:
            self._back.add(device)
            self._bring_back(disk, device)
            return {"ok": True}
        member = disk.array.roster.member(device)
        if member is not None and member.reachable:
            disk.fail(device, "degraded")
        disk.replace(device)
        return {"ok": True}

    def _bring_back(self, disk: ArrayDisk[Any], device: int) -> None:
        """Bring the device back, if the engine has given it up: it returns, or a new one takes its
        place if its label went wrong, so that it cannot be recognised. It may be a spare by now.
        """
        roster = disk.array.roster
        member = roster.member(device)
        if member.reachable if member is not None else roster.spare(device) is not None:
            return
        try:
            disk.return_(device)
        except BadRequest:
            disk.replace(device)


def _gone(disk: ArrayDisk[Any]) -> set[int]:
    """Return the devices whose members are away or have not caught up."""
    return {member.index for member in disk.array.members if member.state is not ACTIVE}
