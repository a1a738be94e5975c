"""The check of an array in place: it compares the parity of every stripe with its data.

Without checksums it cannot tell which piece is wrong. So the data is taken as it is, and parity is
made to agree with it.
"""

from refmodel.inplace.disk import InPlaceDisk


def check(disk: InPlaceDisk) -> list[str]:
    """Return a line for each stripe whose parity did not fit its data.

    Returns none if a device is away, or goes away meanwhile: then parity cannot be compared.
    """
    if not disk.array.redundant:
        return []
    leg = disk.array.capacity
    problems = [
        f"stripe {stripe}: its parity does not fit its data"
        for stripe in range(disk.geometry.stripes)
        if leg.verify(stripe, [], "scrub")[0]
    ]
    return problems if disk.array.redundant else []
