"""Bugs of in-place arrays."""

from refmodel.array.component import ComponentState
from refmodel.bugs.registry import bug
from refmodel.inplace.disk import InPlaceDisk

ENGINE = "in-place-raid5"


@bug(44, "btrfs 651 and its kin", "a read-modify-write leaves the parity as it was", engine=ENGINE)
def parity_not_modified(disk: InPlaceDisk) -> None:
    disk.stripes._modified = lambda stripe, parts: []


@bug(
    33,
    "the write hole: md before it had a journal",
    "recovery leaves parity that does not fit the data as a cut left it",
    engine=ENGINE,
)
def write_hole(disk: InPlaceDisk) -> None:
    write = disk.stripes.write
    k = disk.geometry.k
    disk.stripes.write = lambda extents, cause: write(
        [extent for extent in extents if cause != "recovery" or extent.piece < k], cause
    )


@bug(39, "md 8313b8e57f55", "a device that returns is taken for in sync", engine=ENGINE)
def in_place_return_without_resync(disk: InPlaceDisk) -> None:
    return_ = disk.array.return_

    def return_active(device: int):
        member = return_(device)
        if member is not None:
            member.state = ComponentState.ACTIVE
        return member

    disk.array.return_ = return_active
