"""Bugs of in-place arrays."""

from refmodel.array.member import Member
from refmodel.bugs.registry import after, bug, override
from refmodel.inplace.disk import InPlaceDisk
from refmodel.inplace.stripes import Extent

ENGINE = "in-place-raid5"


@bug(44, "btrfs 651 and its kin", "a read-modify-write leaves the parity as it was", engine=ENGINE)
def parity_not_modified(disk: InPlaceDisk) -> None:
    """Plant it: no extent has modified parity."""
    override(disk.stripes, "modified_parity", lambda stripe, parts: [])


@bug(
    33,
    "the write hole: md before it had a journal",
    "recovery leaves parity that does not fit the data as a cut left it",
    engine=ENGINE,
)
def write_hole(disk: InPlaceDisk) -> None:
    """Plant it: recovery writes no parity."""
    write = disk.stripes.write
    k = disk.geometry.k

    def write_data(extents: list[Extent], cause: str) -> None:
        write([extent for extent in extents if cause != "recovery" or extent.piece < k], cause)

    override(disk.stripes, "write", write_data)


@bug(39, "md 8313b8e57f55", "a device that returns is taken for in sync", engine=ENGINE)
def in_place_return_without_resync(disk: InPlaceDisk) -> None:
    """Plant it: a member that returns is active."""

    def activate(member: Member | None, device: int) -> None:
        if member is not None:
            member.activate()

    after(disk.array, "return_", activate)
