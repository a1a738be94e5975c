"""Possible disks, and under the profile `prefix` also what the next power cut will leave.

Under `prefix` a power cut leaves the disk as it was at one moment since the last flush. The search
chooses this moment, the *mark*, when it comes: it is a step that blocks share, like a snapshot. So
no list of all earlier disks is needed, and blocks can be judged apart.
"""

from collections.abc import Iterator
from typing import NamedTuple

from conformance.contract import model
from conformance.contract.model import EMPTY, Image, State
from conformance.contract.trace import Event

MARK = "mark"  # the operation of the step


class World(NamedTuple):
    """The state of the contract, and what is `saved` at the next power cut once the mark is set."""

    now: State
    saved: Image | None = None


def after(world: World, event: Event) -> Iterator[World]:
    """Yield the worlds after a step; none if the contract does not allow it."""
    now, saved = world
    if event["op"] == MARK:
        yield World(now, Image(now.live, now.snaps, EMPTY, None))
        return
    if saved is not None and event["op"] == "crash":
        now = now._replace(live=saved.live, snaps=saved.snaps, survivors=saved)
    for state in model.step((now,), event):
        if saved is None or event["op"] == "crash" and state.power:
            yield World(state)
        elif model.answer_of(event) != "ok" or event["op"] not in ("flush", "restart"):
            if event.get("fua"):
                changes = enumerate(event["tags"], event["lba"])
                yield World(state, saved._replace(live=saved.live.update(changes)))
            if not event.get("fua") or not event.get("told", True):
                yield World(state, saved)
        # otherwise what was saved before the flush does not survive
