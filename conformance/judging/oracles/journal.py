"""The lines of a trace for specs/TraceMirroredLog.tla: what became of the log on its mirrors, of
its checkpoint slots and of the members, and which devices were there.

A mirror is a number from 1 on. A device is the number of its place, from 1 on; each device that is
put into that place later has `PLACE` more. A member that has no mirror votes: it is a voter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from conformance.contract.trace import Event, Trace
from conformance.judging.oracles.legs import Line, Place

PLACE = 1000  # more than there are places
VOTER = 100_000  # more than there are devices; the voters that hold no log are behind it
COMMANDS = frozenset(("fail", "return", "replace"))
SAME = frozenset(  # the events that are lines as they are
    (
        "submit",
        "append",
        "begin",
        "log_append",
        "freeze",
        "checkpoint_nodes",
        "checkpoint_commit",
        "load",
        "found",
        "recover",
    )
)
EVENTS = frozenset(("append", "begin", "found"))  # those that no other spec knows
CLAUSES = {  # line -> its rule, in the words of specs/MirroredLog.tla
    "submit": "Begin, Submit: the next number, in the generation that was begun and flushed; it "
    "says which record was the last to be flushed",
    "append": "Submit: a record is on every mirror that can be reached, behind the record before "
    "it, and overwrites nothing that is needed",
    "crash": "Crash: only what was not flushed is lost",
    "open": "Open: a majority of the voters is there, one of them current; the members are those "
    "of the newest record, under a term that was never used",
    "shut": "Open: the disk opens where a majority of the voters is there, one of them current",
    "load": "Load: the newest checkpoint of all current mirrors",
    "found": "Replay: the next record, and on every current mirror that has flushed it",
    "recover": "Recover: no current mirror has the next record, and none says that it was flushed",
    "return": "Return: a device that is back is current only if nothing was written since it left",
    "replace": "Replace: a new device takes the place of one that is gone",
    "active": "Activate: it has the slot of the newest checkpoint, and all that was logged since",
}


@dataclass
class Devices:
    """The members and the devices of a trace, as its events tell."""

    k: int
    mirrors: int
    on: list[int]  # member -> number of its device
    states: list[str]  # member -> state
    copies: dict[int, int] = field(default_factory=dict)  # number -> devices that it had before
    used: set[int] = field(default_factory=set)
    condemned: set[int] = field(default_factory=set)  # members that are degraded on record

    def device(self, number: int) -> int:
        """Return the device with a number, as it is now."""
        device = number + 1 + PLACE * self.copies.get(number, 0)
        self.used.add(device)
        return device

    def member(self, number: int) -> int | None:
        """Return the member on a device, if any."""
        return self.on.index(number) if number in self.on else None

    def voter(self, member: int) -> int:
        """Return the voter for a member: its device, if it has a mirror."""
        holds_log = member < self.mirrors
        return self.device(self.on[member]) if holds_log else VOTER + member - self.mirrors

    @property
    def enough(self) -> bool:
        """True if a change is put on record."""
        active = [state == "active" for state in self.states]
        return sum(active) >= self.k and any(active[: self.mirrors])

    def recorded(self) -> None:
        """Note that the members are on record as they are now."""
        self.condemned = {at for at, state in enumerate(self.states) if state == "degraded"}


def shape(header: Line) -> tuple[int, int]:
    """Return the numbers of mirrors and of other voters: one run of TLC follows one shape."""
    return header["mirrors"], len(header["others"])


def _had_faults(trace: Trace) -> bool:
    """Return whether the media of some device had a fault, for the whole trace or from a request
    on.
    """
    asked = any("fault" in event for event in trace.events)
    return asked or "faults" not in trace.hello and bool(trace.options.get("faults"))


def lines(trace: Trace) -> Iterator[tuple[list[Line], list[Place]]]:
    """Yield a header, the lines, and where each is from; nothing if the trace does not tell of its
    log, or if the media had faults.

    They end at a command about devices that was cut short.
    """
    geometry = trace.geometry
    if geometry is None or "log" not in geometry or _had_faults(trace):
        return
    followed = _Follower(trace, geometry)
    found = list(followed.lines())
    last = max([line.get("sequence", 0) for line, _ in found], default=0)
    opened = [line for line, _ in found if line["event"] == "open"]
    if not opened:
        return
    devices = followed.devices
    others = max(1, len(devices.on) - devices.mirrors)  # with two members alone, the witness
    header: Line = {
        "trace": 1,
        "mirrors": devices.mirrors,
        "devices": sorted(devices.used.union(range(1, devices.mirrors + 1))),
        "others": [VOTER + other for other in range(others)],
        "place": PLACE,
        "log": geometry["log"],
        "term": opened[0]["term"],
        "last": last,
    }
    yield [header, *(line for line, _ in found)], [place for _, place in found]


class _Follower:
    """Follows the events of one trace."""

    def __init__(self, trace: Trace, geometry: Event) -> None:
        members = geometry["k"] + geometry["m"]
        self.devices = Devices(
            geometry["k"], geometry["m"] + 1, [*range(members)], ["active"] * members
        )
        self._events = trace.events
        self._open = False  # whether the disk is open
        self._loaded = False  # whether recovery has gone on behind the checkpoint
        self._down = True  # whether nobody has begun to open it since it was closed

    def lines(self) -> Iterator[tuple[Line, Place]]:
        """Yield each line, and where it is from."""
        for index, event in enumerate(self._events):
            if "failure" in event or event["op"] in COMMANDS and event["result"] is None:
                return
            for number, line in self._operation(index, event):
                yield line, (index, number)
            if event["op"] == "restart" and event["result"] and not event["result"]["ok"]:
                return
            if self._left_half_open(event):
                return

    def _operation(self, index: int, event: Event) -> Iterator[tuple[int | None, Line]]:
        op, was_open = event["op"], self._open
        if op == "crash":
            yield from self._crash(index, 0, close=False)
        elif not was_open and event["result"] and event["result"]["ok"]:
            yield from self._moved(op, event)
        inside = event.get("events", ())
        for number, happened in enumerate(inside):
            if happened["event"] == "members":
                if op != "crash":
                    yield from self._crash(index, number, close=op == "restart" and was_open)
                yield number, self._opened(happened)
            for line in self._inside(happened):
                yield number, line
        tries = op in ("crash", "restart") or not was_open and op in ("fail", "return", "tick")
        told = any(happened["event"] == "members" for happened in inside)
        if tries and not told and event["result"] and event["result"]["ok"]:
            if op != "crash":
                yield from self._crash(index, len(inside), close=op == "restart" and was_open)
            yield None, {"event": "shut"}

    def _left_half_open(self, event: Event) -> bool:
        """Return whether the power failed while the members found missing were put on record."""
        names = [happened["event"] for happened in event.get("events", ())]
        return (
            event["result"] is None
            and not self._loaded
            and "load" in names
            and any(state != "active" for state in self.devices.states)
        )

    def _moved(self, op: str, event: Event) -> Iterator[tuple[None, Line]]:
        """Yield the lines for a device that goes or comes while the disk cannot be opened."""
        if op not in ("fail", "return"):
            return
        member = self.devices.member(event["device"])
        if member is not None and member not in self.devices.condemned:
            voter = self.devices.voter(member)
            yield None, {"event": "insert" if op == "return" else "pull", "voter": voter}

    def _crash(self, index: int, number: int, *, close: bool) -> Iterator[tuple[int | None, Line]]:
        """Yield the lines for a close or a power failure, after those that were about to count."""
        if self._down:
            return
        later = list(_later(self._events, index, number))
        for line in self._unfinished(later):
            yield None, line
        whole: dict[int, list[int]] = {}
        written = set()
        for happened in later:
            if happened["event"] == "submit":
                written.add(happened["sequence"])
            elif happened["event"] == "found" and happened["sequence"] not in written:
                devices = [self.devices.device(device) for device in happened["devices"]]
                whole.setdefault(happened["sequence"], devices)
        slot = next((one["number"] for one in later if one["event"] == "load"), 0)
        self._open, self._loaded, self._down = False, False, True
        yield (
            None,
            {
                "event": "crash",
                "close": close and self.devices.enough,
                "found": [*whole.items()],
                "slot": slot,
            },
        )

    def _unfinished(self, later: Iterable[Event]) -> Iterator[Line]:
        """Yield the change of members that was on record at the power failure and not yet told."""
        found = next((one["members"] for one in later if one["event"] == "members"), None)
        if found is None or not self._open:
            return
        for member, (number, state) in enumerate(found):
            if number != self.devices.on[member]:
                yield from self._rebuilt(member, number)
            if state == "active" and self.devices.states[member] in ("stale", "resyncing"):
                yield from self._activated(member)

    def _opened(self, happened: Event) -> Line:
        self._down = False
        devices = self.devices
        devices.on = [number for number, _ in happened["members"]]
        devices.states = [state for _, state in happened["members"]]
        devices.recorded()
        mirrors = range(devices.mirrors)
        return {
            "event": "open",
            "on": [devices.device(devices.on[member]) for member in mirrors],
            "states": [devices.states[member] for member in mirrors],
            "term": happened.get("term", 0),
        }

    def _inside(self, happened: Event) -> Iterator[Line]:
        devices, name = self.devices, happened["event"]
        if name in SAME:
            if name in ("found", "recover") and not self._loaded:
                self._loaded = True
                yield {"event": "loaded"}
            self._open = self._open or name == "recover"
            line = {key: happened[key] for key in happened if key not in ("usage", "pages")}
            if "devices" in line:
                line["devices"] = [devices.device(number) for number in line["devices"]]
            yield line
        elif name == "fail":
            yield from self._failed(happened)
        elif name in ("return", "replace"):
            yield from self._back(happened, new=name == "replace")
        elif name == "rebuild" and (member := devices.member(happened["device"])) is not None:
            yield from self._rebuilt(member, happened["onto"])
        elif name == "active" and (member := devices.member(happened["device"])) is not None:
            yield from self._activated(member)

    def _failed(self, happened: Event) -> Iterator[Line]:
        member = self.devices.member(happened["device"])
        if member is None:
            yield from self._saved()
            return
        gone = self.devices.states[member] in ("absent", "degraded")
        self.devices.states[member] = happened["mode"]
        if not gone:
            yield {"event": "pull", "voter": self.devices.voter(member)}
        if member < self.devices.mirrors and not gone:
            if self.devices.enough:
                self.devices.recorded()
            yield {"event": "left", "member": member + 1, "saved": self.devices.enough}
        else:
            yield from self._saved()

    def _back(self, happened: Event, *, new: bool) -> Iterator[Line]:
        devices, number = self.devices, happened["device"]
        if new:
            devices.copies[number] = devices.copies.get(number, 0) + 1
        member = None if happened["state"] == "spare" else devices.member(number)
        if member is None:
            yield from self._saved()
        elif new:
            yield from self._rebuilt(member, number)
        else:
            yield {"event": "insert", "voter": devices.voter(member)}
            devices.states[member] = happened["state"]
            if member < devices.mirrors:
                yield {"event": "return", "member": member + 1, "state": happened["state"]}
            yield from self._saved()

    def _rebuilt(self, member: int, number: int) -> Iterator[Line]:
        """Yield the line for a member that begins anew on the device with a number."""
        devices = self.devices
        devices.on[member], devices.states[member] = number, "resyncing"
        if member < devices.mirrors:
            device = devices.device(number)
            yield {"event": "replace", "member": member + 1, "device": device}
        else:
            yield {"event": "insert", "voter": devices.voter(member)}
            yield {"event": "save"}

    def _activated(self, member: int) -> Iterator[Line]:
        self.devices.states[member] = "active"
        if member < self.devices.mirrors:
            yield {"event": "active", "member": member + 1}
        else:
            yield {"event": "save"}

    def _saved(self) -> Iterator[Line]:
        if self.devices.enough:
            self.devices.recorded()
            yield {"event": "save"}


def _later(events: list[Event], index: int, number: int) -> Iterator[Event]:
    """Yield the events inside from a place of the trace on."""
    for at in range(index, len(events)):
        yield from events[at].get("events", ())[number if at == index else 0 :]
