"""Scrub: read every copy of everything that is stored, and repair a wrong copy from good ones.

It begins with a checkpoint: after that nothing in the log is needed, nor any node that only an
older checkpoint refers to. So all that is needed is read, also where a device goes wrong while the
disk is open.
"""

import operator
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial

from refmodel.array import audit as array_audit
from refmodel.array.layout import PAGE
from refmodel.array.leg import Check, Leg
from refmodel.core.errors import DataLost, DiskError, HostRefused
from refmodel.journal import checkpoint as checkpoints
from refmodel.log_structured.audit import audit
from refmodel.log_structured.chunks.deduplication import ALIAS
from refmodel.log_structured.disk import LogStructuredDisk
from refmodel.log_structured.resync import chunk_checks, page_check
from refmodel.log_structured.state import DiskState

# What a checkpoint says of a moment at which nothing is in flight, and nothing waits.
DESCRIBED = (
    "number",
    "log_tail",
    "log_sequence",
    "log_generation",
    "next_view",
    "first_unused_page",
    "first_unused_segment",
    "sealed",
    "live",
    "pages",
)


@dataclass
class Findings:
    """The findings of a scrub."""

    verified: Counter[str] = field(default_factory=Counter)  # kind of thing -> how many
    repaired: Counter[str] = field(default_factory=Counter)  # kind of thing -> copies rewritten
    lost: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)  # between the maps

    @property
    def clean(self) -> bool:
        """True if nothing is lost, and the maps agree."""
        return not self.lost and not self.contradictions


def scrub(disk: LogStructuredDisk) -> Findings:
    """Verify and repair the whole disk. Returns what was found; DataLost is never raised."""
    found = Findings()
    state = disk.state
    if disk.array.writable:
        try:
            disk.checkpoint()
            found.contradictions += _newest_slot(state)
        except HostRefused:
            pass  # everything that can be read is verified
        except DiskError as error:
            found.contradictions.append(f"no checkpoint can be taken, or read: {error}")
    try:
        for member in disk.array.members:
            found.verified["label"] += member.reachable
            found.repaired["label"] += disk.array.verify_label(member)
        if disk.array.writable:
            quorum = disk.array.roster.quorum
            present, wrong = quorum.verify()
            made = quorum.renew_witness()
            found.verified["membership record"] += present + made
            found.repaired["membership record"] += wrong + made
    except DataLost as lost:
        found.contradictions.append(f"a label or a record of the members cannot be written: {lost}")

    def verify(what: str, leg: Leg, stripe: int, checks: list[Check], names: list[str]) -> None:
        found.verified[what] += len(checks)
        repaired, lost = leg.verify(stripe, checks, "scrub")
        found.repaired[what] += repaired
        offsets = {check.offset for check in lost}
        found.lost += [
            f"{name} is lost"
            for name, check in zip(names, checks, strict=True)
            if check.offset in offsets
        ]

    try:
        state.survey.finish()
    except DataLost as lost:
        found.contradictions.append(f"nobody knows what is in use: {lost}")
    for slot in checkpoints.slots(state.performance):
        check = Check(
            checkpoints.offset(slot.number), PAGE, partial(operator.eq, checkpoints.encode(slot))
        )
        verify(
            "checkpoint",
            state.performance,
            check.offset // PAGE,
            [check],
            [f"checkpoint {slot.number}"],
        )
    for page, _ in state.pages.stored():
        check = page_check(state, page)
        verify("page", state.performance, check.offset // PAGE, [check], [f"page {page}"])
    try:
        for segment in sorted(state.segments.sealed):
            names = [f"chunk {mba}" for mba in state.chunks.living(segment)]
            verify("chunk", state.capacity, segment, chunk_checks(state, segment), names)
        state.update_maps()
        found.contradictions += _unseen(found, state)
        found.contradictions += audit(state) + array_audit.audit(disk.array)
    except DataLost as lost:
        found.contradictions.append(f"the maps cannot be walked: {lost}")
    state.performance.flush("scrub")
    state.capacity.flush("scrub")
    return found


def _newest_slot(state: DiskState) -> list[str]:
    """Return what the slot of the checkpoint that was just taken says otherwise than memory.

    Nothing is in flight.
    """
    newest = checkpoints.slots(state.performance)[:1]
    now = replace(state.describe(), number=state.checkpoint_number)
    return [
        f"the newest checkpoint has {name} {getattr(slot, name)}, and memory {getattr(now, name)}"
        for slot in newest
        for name in DESCRIBED
        if getattr(slot, name) != getattr(now, name)
    ] or ([] if newest else ["there is no checkpoint"])


def _unseen(found: Findings, state: DiskState) -> list[str]:
    """Return what this scrub has not looked at, though the maps say that it is stored."""
    stored = {
        "checkpoint": min(2, state.checkpoint_number),
        "page": state.pages.used_count - len(state.pages.dirty) - state.pages.frozen_count,
        "chunk": sum(not pba & ALIAS for _, (pba, _) in state.chunks.middle.items()),
    }
    return [
        f"{found.verified[what]} of {number} were verified: {what}"
        for what, number in stored.items()
        if state.array.redundant and found.verified[what] < number
    ]
