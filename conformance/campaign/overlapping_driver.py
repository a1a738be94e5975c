"""Sends a program whose requests overlap to a target, and records when each was called and
answered.

A request of such a program carries `overlaps`: it may be in flight together with at most that many
of the requests just before it, and waits for the answers of all earlier ones. Without the field it
waits for all of them. So a program that is replayed, or from which requests were dropped, keeps its
shape; and a program without the field has one request in flight.

Where the power failed because of a `cut`, nothing that was in flight is answered, and a crash comes
next, which recovers.
"""

import time
from collections.abc import Mapping
from typing import Any

from conformance.campaign.exchange import described, encoded, inside, record
from conformance.campaign.outage import Outage
from conformance.contract.trace import OVERLAPPING, Event, Trace
from conformance.targets.base import Message, PowerCut, TargetFailure
from conformance.targets.overlapping import Calls
from conformance.targets.time_limit import SLOW_FACTOR


def drive(
    calls: Calls,
    program: list[Message],
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    tells: bool = False,
) -> Trace:
    """Send the program; return the trace, of version 2.

    It ends early if the target fails or creates no disk. With `tells`, what happened inside is in
    it, as the target tells it."""
    hello = {key: value for key, value in calls.hello.items() if key != "ok"}
    trace = Trace(hello, [], seed, dict(options or {}))
    run = _Run(calls, trace, seed or 0, tells)
    try:
        for request in program:
            while not run.may_call(request):
                run.wait()
            if run.outage.forbids(request):
                continue
            if request["op"] != "crash":
                run.recover()
            while not run.call(request):
                run.recover()
        while run.flying:
            run.wait()
        run.recover()
    except TargetFailure as failure:
        run.fail(failure)
    except _NoDisk:
        pass
    return trace


class _NoDisk(Exception):
    """The target creates no disk."""


class _Run:
    """One program on its way: what is in flight, and the count of calls and answers."""

    def __init__(self, calls: Calls, trace: Trace, seed: int, tells: bool):
        self._calls, self._trace, self._seed, self._tells = calls, trace, seed, tells
        self._limit = max(1, calls.hello.get("in_flight", 1))
        self._position = 0
        self._dark = False  # whether the power failed, and no crash has recovered since
        self.flying: dict[int, float] = {}  # index of the event -> its deadline
        self.outage = Outage(calls.hello)

    def may_call(self, request: Message) -> bool:
        """Return whether the request may be called now."""
        events = self._trace.events
        alone = request["op"] not in OVERLAPPING
        if any(events[index]["op"] not in OVERLAPPING for index in self.flying):
            return False
        if request["op"] == "crash" and "overlaps" in request:
            alone = False
        if alone and self.flying or len(self.flying) >= self._limit:
            return False
        return all(index >= len(events) - request.get("overlaps", 0) for index in self.flying)

    def call(self, request: Message) -> bool:
        """Call the request, behind the answers that are there: the more the kit knows of the order,
        the less a wrong answer can be explained. Return False if they say that the power has
        failed; then only a crash is called. Raises TargetFailure.
        """
        index = len(self._trace.events)
        self._tell(self._calls.inside())
        left_out = {
            name
            for name, taken in (
                ("cut", self._calls.cuts),
                ("schedule", self._calls.schedules),
                ("wait", self._calls.hello.get("waits")),
            )
            if not taken
        }
        event: Event = {key: value for key, value in request.items() if key not in left_out}
        message = encoded(event, self._calls.hello, index, self._seed)
        self.listen()
        if self._dark and request["op"] != "crash":
            return False
        event |= {"result": None, "called": self._next(), "answered": None}
        self._trace.events.append(event)
        patience = self._calls.patience * (1 if request["op"] in OVERLAPPING else SLOW_FACTOR)
        self.flying[index] = time.monotonic() + patience  # counted from the call
        try:
            self._calls.call(index, message)
        except PowerCut as cut:
            self._cut(cut)
        self.listen()
        return True

    def listen(self) -> None:
        """Take the answers that are there. Raises TargetFailure."""
        while self.flying and self._calls.answered():
            self.wait()

    def recover(self) -> None:
        """Send crashes after a power cut, until one is answered. Raises TargetFailure."""
        while self._dark:
            self.call({"op": "crash", "overlaps": 0})  # sent again, it waits for the cut
            while self.flying:
                self.wait()

    def wait(self) -> None:
        """Take one answer. Raises TargetFailure, also if none comes in time.

        A crash in flight ends the other requests, which need no answer then."""
        crashes = [index for index in self.flying if self._trace.events[index]["op"] == "crash"]
        index = min(crashes or self.flying, key=self.flying.__getitem__)
        deadline = self.flying[index]
        try:
            found = self._calls.answer(max(0.0, deadline - time.monotonic()))
        except PowerCut as cut:
            self._cut(cut)
            return
        if found is None:
            hang = TargetFailure("hang", f"no answer to operation {index} in time")
            raise _of(index, self._calls.ended(hang))
        answered, response = found
        if answered not in self.flying:
            raise TargetFailure("protocol", f"it answered {answered}, which is not in flight")
        event = self._trace.events[answered]
        del self.flying[answered]
        try:
            if "events" in response and (event["op"] in OVERLAPPING or not self._tells):
                self._tell(response["events"])
                response = {key: response[key] for key in response if key != "events"}
            record(event, response, self._calls.hello, self._seed)
        except TargetFailure as failure:
            raise _of(answered, failure) from None
        event["answered"] = self._next()
        self.outage.note(event)
        if event["op"] == "crash":
            self._end()  # everything else in flight
            self._dark = False
        if event["op"] == "create" and not event["result"]["ok"]:
            raise _NoDisk

    def _cut(self, cut: PowerCut) -> None:
        """Take the answers from before a power cut; no others follow."""
        self.listen()
        alone = [i for i in self.flying if self._trace.events[i]["op"] not in OVERLAPPING]
        if alone and cut.events and self._tells:
            self._trace.events[alone[0]]["events"] = inside(cut.events)
        else:
            self._tell(cut.events)
        self._end()
        self._dark = True

    def _end(self) -> None:
        """Record that no request in flight is answered any more."""
        for index in self.flying:
            self.outage.note(self._trace.events[index])
        self.flying.clear()
        self._calls.cut()

    def _tell(self, events: object) -> None:
        """Record what happened inside, before the next call or answer. Raises TargetFailure."""
        if events and self._tells:
            self._trace.inside.append(
                {"op": "inside", "at": self._position, "events": inside(events)}
            )

    def fail(self, failure: TargetFailure) -> None:
        """Record the failure with the request that it belongs to, or else with the last one."""
        index = getattr(failure, "index", None)
        if index is None:
            index = max(self.flying, default=len(self._trace.events) - 1)
        event = self._trace.events[index]
        event["result"], event["answered"] = None, self._next()
        event["failure"] = described(failure, self._calls)

    def _next(self) -> int:
        self._position += 1
        return self._position - 1


def _of(index: int, failure: TargetFailure) -> TargetFailure:
    failure.index = index  # type: ignore[attr-defined]  # which request failed
    return failure
