"""The requests that need nothing but the open disk."""

from refmodel.adapter.cross_checks import contradictions
from refmodel.adapter.dialogue import Message, integer, text
from refmodel.cache.disk import behind_cache
from refmodel.engine.array_disk import ArrayDisk
from refmodel.inplace.check import check as check_parity
from refmodel.inplace.disk import InPlaceDisk
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.scrub import scrub
from refmodel.redolog.check import check as check_tables
from refmodel.redolog.disk import RedoLogDisk
from refmodel.registry import Disk


def perform(disk: Disk, message: Message) -> Message | None:
    """Perform a request; return its answer, or None if it is none of these. Raises DiskError."""
    match message.get("op"):
        case "unmap":
            disk.unmap(integer(message, "lba"), integer(message, "count"))
        case "flush":
            disk.flush()
        case "snapshot":
            disk.snapshot(text(message, "name"))
        case "delete":
            disk.delete(text(message, "name"))
        case "revert":
            disk.revert(text(message, "name"))
        case "fail":
            disk.fail(integer(message, "device"), text(message, "mode"))
        case "return":
            disk.return_(integer(message, "device"))
        case "replace":
            disk.replace(integer(message, "device"))
        case "settle":
            disk.settle()
        case _:
            return None
    return {"ok": True}


def problems(disk: Disk, *, repairs: bool = True) -> list[str]:
    """Scrub a disk, and return a line per problem.

    That something was repaired is one, if `repairs`. Returns nothing while devices are gone.
    """
    behind = behind_cache(disk)
    if isinstance(behind, ArrayDisk) and not behind.array.redundant:
        return []
    found, repaired = scrubbed(behind)
    if disk.usable:
        found += contradictions(disk)
    return found + ([f"{repaired} repaired"] if repaired and repairs else [])


def scrubbed(disk: Disk) -> tuple[list[str], int]:
    """Scrub a disk.

    Returns a line for each thing that is lost or contradicts another, and how many were repaired.
    """
    if not disk.usable:
        return [], 0
    if isinstance(disk, RedoLogDisk):
        return check_tables(disk)[0], 0
    if isinstance(disk, InPlaceDisk):
        return check_parity(disk)[0], 0
    assert isinstance(disk, LogStructuredDisk)
    found = scrub(disk)
    return found.contradictions + found.lost, found.repaired.total()
