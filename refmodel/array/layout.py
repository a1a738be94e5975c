"""Layouts: how many devices an array has, and where the parts of a device begin.

Every device has, in this order: two copies of the label, two copies of the membership record, the
component of the performance leg, the component of the capacity leg.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from refmodel.core.validation import require

PAGE = 4096  # bytes of a tree node, a checkpoint slot, a label
LAYOUTS = {
    "mirror": (1, 1),
    "raid5-2+1": (2, 1),
    "raid5-4+1": (4, 1),
    "raid6-4+2": (4, 2),
}  # k and m: data and parity components of the capacity leg
MOST_SPARES = 8
MEMBERSHIP_BASE = 2 * PAGE  # byte offset of the membership record on each device


@dataclass(frozen=True, kw_only=True)
class ArrayGeometry(ABC):
    """The parameters of a disk on an array, fixed by `create`, and what follows from them.

    A name ends with its unit. An engine adds its own fields, and says how large its parts are.
    """

    engine: str
    blocks: int  # size of the virtual disk
    block_bytes: int
    layout: str
    spares: int = 0  # devices beyond the members, when the disk is made
    repair_timer: float = 3600.0  # seconds that a component may be absent before it is rebuilt
    repair_share: int = 30  # percent of device I/Os for repair while there is other work

    sector_bytes = 512  # a device has to write so many bytes whole or not at all

    @property
    @abstractmethod
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the conformance dialogue that the engine has."""

    @property
    @abstractmethod
    def crash_profile(self) -> str:
        """The crash profile, which says what survives a power cut: "ack", "prefix" or "block"."""

    @property
    @abstractmethod
    def segment_bytes(self) -> int:
        """Data bytes of a stripe of the capacity leg, parity not counted."""

    @property
    @abstractmethod
    def performance_bytes(self) -> int:
        """Size of the performance component on each device."""

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """Size of a device."""

    @cached_property
    def k(self) -> int:
        """Data components of the capacity leg."""
        return LAYOUTS[self.layout][0]

    @cached_property
    def m(self) -> int:
        """Number of members that may fail: the capacity leg has m parity components.

        The performance leg has m + 1 mirrors.
        """
        return LAYOUTS[self.layout][1]

    @cached_property
    def members(self) -> int:
        """Devices that the disk is stored on."""
        return self.k + self.m

    @cached_property
    def devices(self) -> int:
        """Members and spares."""
        return self.members + self.spares

    @cached_property
    def witness_bytes(self) -> int:
        """Size of the witness; 0 if there is none.

        Two members need a third vote. Of three or more there is always a majority.
        """
        return 2 * PAGE if self.members == 2 else 0

    @cached_property
    def performance_base(self) -> int:
        """Byte offset of the performance component on each device."""
        return MEMBERSHIP_BASE + 2 * PAGE

    @cached_property
    def log_base(self) -> int:
        """Byte offset of the durable log in the performance leg, behind two checkpoint slots."""
        return 2 * PAGE

    @cached_property
    def capacity_base(self) -> int:
        """Byte offset of the capacity component on each device."""
        return self.performance_base + self.performance_bytes

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, as the label stores them."""
        return asdict(self)


def require_repairable(spares: int, repair_timer: float, repair_share: int) -> None:
    """Raises BadRequest for a number of spares, a timer or a share that no array can have."""
    require(0 <= spares <= MOST_SPARES, f"a disk has 0 to {MOST_SPARES} spares")
    require(
        0 <= repair_timer < math.inf, "the repair timer is a finite number of at least 0 seconds"
    )
    require(1 <= repair_share <= 99, "the share of repair is 1 to 99 percent")
