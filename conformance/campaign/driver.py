"""The driver: it sends a program to a target, and records a trace."""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from conformance import targets
from conformance.campaign import overlapping_driver
from conformance.campaign.exchange import LONGEST_MESSAGE, described, encoded, inside, record
from conformance.campaign.outage import Outage
from conformance.contract import trace as traces
from conformance.contract.printable import printable
from conformance.contract.source import Source
from conformance.contract.trace import Event, Trace
from conformance.targets import Factory
from conformance.targets.base import (
    RAISED,
    Message,
    PowerCut,
    Target,
    TargetFailure,
    Unusable,
    named,
)
from conformance.targets.overlapping import calls
from conformance.targets.process import ProcessTarget

UNASKED_CUT = "it raised PowerCut though the request has no `cut`"
EARLIER = "; the trace before may be the cause"
LARGEST_COUNTER = float(1 << 63)


def drive(
    target: Target,
    program: list[Message],
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Trace:
    """Send the requests of the program, and a crash after each operation that was cut short; record
    the trace.

    It ends early where the target fails or creates no disk.
    """
    hello = {key: value for key, value in target.hello.items() if key != "ok"}
    trace, outage = Trace(hello, [], seed, dict(options or {})), Outage(hello)
    for request in _sent(program, trace):
        if outage.forbids(request):
            continue
        event = ask(target, request, hello, len(trace.events), seed or 0)
        trace.events.append(event)
        outage.note(event)
        if "failure" in event or event["op"] == "create" and not event["result"]["ok"]:
            break
    return trace


def _sent(program: list[Message], trace: Trace) -> Iterator[Message]:
    """Yield the program, with the crashes that operations cut short call for."""
    for request in program:
        if request["op"] != "crash" and trace.events and trace.events[-1]["result"] is None:
            yield {"op": "crash"}
        yield request
    while trace.events[-1]["result"] is None and "failure" not in trace.events[-1]:
        yield {"op": "crash"}


def ask(target: Target, request: Message, hello: Message, number: int, seed: int) -> Event:
    """Send one request; return the event that records it."""
    left_out = {"schedule"}
    if not getattr(target, "cuts", False):
        left_out |= {"cut", "kept", "left"}
    if not hello.get("waits"):
        left_out |= {"wait"}
    event = {key: value for key, value in request.items() if key not in left_out}
    event["result"] = None
    try:
        try:
            record(event, _answer(target, encoded(event, hello, number, seed)), hello, seed)
        except PowerCut as cut:
            if "cut" not in event and not getattr(target, "breaks_off", False):
                raise TargetFailure("protocol", UNASKED_CUT) from None
            if cut.events:
                event["events"] = inside(cut.events)
    except TargetFailure as failure:
        event["failure"] = described(failure, target)
    return event


def _answer(target: Target, message: Message) -> Message:
    """Return the response, a dict. Any other exception of a target in process is its failure."""
    try:
        response = target.request(message)
    except (PowerCut, TargetFailure, Unusable):
        raise
    except RAISED as error:
        raise TargetFailure(
            "exit", f"it raised {named(error)[:LONGEST_MESSAGE]}", traceback.format_exc()[-4000:]
        ) from None
    if not isinstance(response, dict):
        raise TargetFailure(
            "protocol", f"its answer is no object: {str(response)[:LONGEST_MESSAGE]}"
        )
    return response


def _said_more(target: Target, trace: Trace) -> bool:
    """Return whether the target said more than it was asked for: the last operation records it, so
    that the next trace is not blamed.
    """
    try:
        if isinstance(target, ProcessTarget):
            target.rest()
    except TargetFailure as failure:
        trace.events[-1] |= {"result": None, "failure": described(failure, target)}
        return True
    return False


def _stack_in_target(error: BaseException) -> str:
    """Return where in its own code the target raised this when it was opened.

    Nothing if it was not called at all: then only the kit's code would be shown."""
    kit, target = error.__traceback__, None
    while kit is not None:
        if kit.tb_frame.f_code.co_filename == targets.__file__:
            target = kit.tb_next
        kit = kit.tb_next
    return "".join(traceback.format_tb(target))[-4000:]


class Bench:
    """The target on the bench: opened when first used, and again with other options or after a
    failure.
    """

    def __init__(self, factory: Factory):
        self._factory = factory
        self._target: Target | None = None
        self._options: dict[str, Any] = {}
        self._hellos: dict[str, Message] = {}
        self._counts = True
        self._used = False  # by a trace, since it was opened
        self.hurried = False  # whether a target in another process has less time for an answer

    @property
    def usual(self) -> dict[str, Any]:
        """The usual value of each option that a trace may choose."""
        return self._factory.first

    @property
    def in_process(self) -> bool:
        """True if the target runs in this process, where the kit limits its time."""
        return self._factory.seconds is not None

    def draw(self, choose: Source) -> dict[str, Any]:
        """Return options for one trace. Raises Unusable."""
        if self._factory.asks:
            self.hello({})
        return self._factory.draw(choose)

    def on(self, options: Mapping[str, Any]) -> Target:
        """Return a target with these options. Raises Unusable."""
        take = getattr(self._target, "take_options", None) if self._factory.asks else None
        if self._target is not None and take is not None and traces.IMPOSSIBLE not in options:
            take(options)
            return self._target
        if self._target is None or self._options != options:
            self.clear()
            try:
                self._target = self._factory(dict(options))
            except Unusable:
                raise
            except RAISED as error:
                text = f"cannot open {self._factory.name}: {named(error)}"
                raise Unusable(printable(text, ""), _stack_in_target(error)) from None
            self._options = dict(options)
            wrong = traces.check_hello(self._target.hello)
            if wrong:
                raise Unusable(f"invalid answer to hello: {wrong}")
        return self._target

    def hello(self, options: Mapping[str, Any]) -> Message:
        """Return what a target with these options says. Raises Unusable."""
        key = repr(sorted(options.items()))
        if key not in self._hellos:
            self._hellos[key] = self.on(options).hello
        return self._hellos[key]

    def cuts(self, options: Mapping[str, Any]) -> bool:
        """Return whether a target with these options cuts the power within operations.

        Raises Unusable.
        """
        return getattr(self.on(options), "cuts", False)

    def schedules(self, options: Mapping[str, Any]) -> bool:
        """Return whether requests to a target with these options may carry `schedule`.

        Raises Unusable.
        """
        return getattr(self.on(options), "schedules", False)

    def drive(
        self,
        program: list[Message],
        seed: int | None,
        options: Mapping[str, Any],
        *,
        tells: bool = False,
    ) -> Trace:
        """Drive a program on the target with these options.

        Where requests overlap, what happened inside is recorded if `tells`. A target that is
        interrupted is put away.
        """
        try:
            return self._drive(program, seed, options, tells)
        except BaseException:
            self.clear()
            raise

    def _drive(
        self, program: list[Message], seed: int | None, options: Mapping[str, Any], tells: bool
    ) -> Trace:
        target = self.on(options)
        if isinstance(target, ProcessTarget):
            target.hurry(self.hurried)
        if any("overlaps" in request for request in program):
            trace = overlapping_driver.drive(calls(target), program, seed, options, tells=tells)
            failed = any("failure" in event for event in trace.events)
        else:
            trace = drive(target, program, seed, options)
            failed = "failure" in trace.events[-1] or trace.events[-1]["result"] is None
        if self._used and trace.events[0].get("failure", {}).get("kind") == "exit":
            trace.events[0]["failure"]["message"] += EARLIER
        self._used = True
        if failed or _said_more(target, trace):
            self.clear()
        return trace

    def counters(self) -> Mapping[str, float]:
        """Return the target's counters since it created its disk; nothing if it has none."""
        if not self._counts or self._target is None:
            return {}
        try:
            response = self._target.request({"op": "stats"})
            counters, lost = response.get("counters"), response.get("error") == "data-lost"
        except RAISED:
            counters, lost = None, False
            self.clear()
        if not isinstance(counters, dict):
            self._counts = lost  # ask again later: other disks of the target may answer
            return {}
        return {
            str(key): value
            for key, value in counters.items()
            if isinstance(value, (int, float)) and abs(value) < LARGEST_COUNTER
        }

    def clear(self) -> None:
        """Put the target away."""
        target, self._target, self._used = self._target, None, False
        if target is not None:
            with suppress(*RAISED):  # it was judged by its answers
                target.close()
