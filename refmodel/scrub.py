"""Scrub: read every copy of everything that is stored, repair what is wrong from what is good, say what is lost.

Labels and the log are not listed: opening a disk has already made their copies the same.
"""

from collections import Counter
from dataclasses import dataclass, field

from refmodel import checkpoint as checkpoints
from refmodel.audit import audit
from refmodel.checksum import crc32c
from refmodel.disk import LogStructuredDisk
from refmodel.errors import DataLost
from refmodel.geometry import PAGE
from refmodel.node import is_node


@dataclass
class Findings:
    verified: Counter[str] = field(default_factory=Counter)  # kind of thing -> how many
    repaired: Counter[str] = field(default_factory=Counter)  # kind of thing -> copies rewritten
    lost: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)  # between the maps

    @property
    def clean(self) -> bool:
        return not self.lost and not self.contradictions


def scrub(disk: LogStructuredDisk) -> Findings:
    """Verify and repair the whole disk. What is lost is reported, never raised."""
    found = Findings()
    state = disk.state

    def verify(what: str, name: str, leg, offset: int, length: int, accept) -> None:
        found.verified[what] += 1
        try:
            found.repaired[what] += leg.verify(offset, length, accept, "scrub")
        except DataLost as lost:
            found.lost.append(f"{name}: {lost}")

    for slot in checkpoints.slots(state.performance):
        whole = checkpoints.encode(slot)
        offset, name = checkpoints.offset(slot.number), f"checkpoint {slot.number}"
        verify("checkpoint", name, state.performance, offset, PAGE, lambda page, whole=whole: page == whole)

    for page, kind in disk.state.pages.stored():
        place = state.pages.offset(page)
        verify("page", f"page {page}", state.performance, place, PAGE, lambda data, page=page, kind=kind: is_node(page, kind, data))

    try:
        for mba, (pba, crc) in state.chunks.middle.items():
            offset, length = state.chunks.offset(pba), disk.geometry.block_bytes
            verify("chunk", f"chunk {mba}", state.capacity, offset, length, lambda data, crc=crc: crc32c(data) == crc)
        found.contradictions = audit(state)
    except DataLost as lost:
        found.contradictions.append(f"the maps cannot be walked: {lost}")
    state.performance.flush("scrub")
    state.capacity.flush("scrub")
    return found
