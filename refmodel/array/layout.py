"""Layouts: how many devices an array has, what each is for, and where its components begin on them.

On every device, whatever an engine keeps there: two copies of the label, two copies of the membership record, then the
component of the performance leg, then that of the capacity leg.
"""

from functools import cached_property

from refmodel.core.validation import require

PAGE = 4096  # bytes of a tree node, a checkpoint slot, a label
LAYOUTS = {
    "mirror": (1, 1),
    "raid5-2+1": (2, 1),
    "raid5-4+1": (4, 1),
    "raid6-4+2": (4, 2),
}  # k and m of the capacity leg
MOST_SPARES = 8
MEMBERSHIP_BASE = 2 * PAGE


class OnArray:
    """Of a geometry, what follows from its layout."""

    layout: str
    spares: int  # devices beyond the members, when the disk is made
    performance_bytes: int

    @cached_property
    def k(self) -> int:
        """Data components of the capacity leg."""
        return LAYOUTS[self.layout][0]

    @cached_property
    def m(self) -> int:
        """How many members may fail; so many parity components, and one mirror more of the performance leg."""
        return LAYOUTS[self.layout][1]

    @cached_property
    def members(self) -> int:
        return self.k + self.m

    @cached_property
    def devices(self) -> int:
        """Members and spares."""
        return self.members + self.spares

    @cached_property
    def witness_bytes(self) -> int:
        """Two mirrors need a third vote; of three members or more there is always a majority."""
        return 2 * PAGE if self.members == 2 else 0

    @cached_property
    def performance_base(self) -> int:
        """Byte offset of the performance component on each device."""
        return MEMBERSHIP_BASE + 2 * PAGE

    @cached_property
    def log_base(self) -> int:
        """Byte offset of the log in the performance leg: two slots that say where it begins are before it."""
        return 2 * PAGE

    @cached_property
    def capacity_base(self) -> int:
        """Byte offset of the capacity component on each device."""
        return self.performance_base + self.performance_bytes


def require_repairable(spares: int, repair_timer: float, repair_share: int) -> None:
    """Raises BadRequest for what no array can be asked for."""
    require(0 <= spares <= MOST_SPARES, f"0 to {MOST_SPARES} spares")
    require(repair_timer >= 0, "the repair timer is at least 0 seconds")
    require(1 <= repair_share <= 99, "the share of repair is 1 to 99 percent")
