"""The check of an array in place: it compares the parity of every stripe with its data.

Without checksums it cannot tell which piece is wrong. So the data is taken as it is, and parity is
made to agree with it.
"""

from refmodel.array.audit import audit
from refmodel.inplace.disk import InPlaceDisk


def check(disk: InPlaceDisk) -> tuple[list[str], int]:
    """Return a line for each stripe whose parity did not fit its data, and how many were compared.

    Returns none if a device is away, or goes away meanwhile: then parity cannot be compared.
    """
    if not disk.array.redundant:
        return [], 0
    leg = disk.array.capacity
    problems = [
        f"stripe {stripe}: its parity does not fit its data"
        for stripe in range(disk.geometry.stripes)
        if leg.verify(stripe, [], "scrub")[0]
    ]
    problems += audit(disk.array)
    return (problems, disk.geometry.stripes) if disk.array.redundant else ([], 0)
