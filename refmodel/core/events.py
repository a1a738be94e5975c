"""Events: what happened inside an engine, in order, for the judges of traces (docs/traces.md)."""

from typing import Any

Event = dict[str, Any]  # "event" is its name; the other keys are its fields


class Events:
    """The events of one disk. They are recorded while `record` is a list; by default it is None.

    Where facts are costly to collect, the code asks first: `if events.record is not None`.
    """

    __slots__ = ("record",)

    def __init__(self) -> None:
        self.record: list[Event] | None = None

    def emit(self, event: str, **facts: object) -> None:
        """Record an event, if events are recorded.

        A fact that is costly may be a function: it is called only if the event is recorded. A read
        is merged into an earlier read of the same components, if only reads came between.
        """
        if self.record is None:
            return
        new: Event = {"event": event} | {
            key: fact() if callable(fact) else fact for key, fact in facts.items()
        }
        if event != "read" or not _merged(self.record, new):
            self.record.append(new)


def _merged(events: list[Event], read: Event) -> bool:
    """Merge a read into an earlier one of the same components. Returns whether one was found."""
    for earlier in reversed(events):
        if earlier["event"] != "read":
            return False
        if (earlier["leg"], earlier["devices"]) == (read["leg"], read["devices"]):
            new = [stripe for stripe in read["stripes"] if stripe not in earlier["stripes"]]
            earlier["stripes"] += new
            return True
    return False
