"""Programs that are sent again, to see whether they fail as a trace did."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.campaign.driver import EARLIER, Bench
from conformance.contract.trace import Trace
from conformance.judging.explain import Verdict
from conformance.judging.verdict import OF_DIALOGUE, alike
from conformance.programs.shrink import MOST_SECONDS, Shrunk, sends, shrink
from conformance.targets.base import Message


class Attempts:
    """Sends programs, and says of each whether it fails like a trace of this verdict.

    `judged` is what judges a trace."""

    def __init__(
        self, bench: Bench, trace: Trace, verdict: Verdict, judged: Callable[[Trace], Verdict]
    ) -> None:
        self._bench, self._trace, self._verdict, self._judged = bench, trace, verdict, judged
        self._anew = False  # whether each program gets a target that is opened for it

    def shrunk(self, most_seconds: float = MOST_SECONDS) -> Shrunk:
        """Shrink the trace.

        A target may be wrong because of earlier traces, or because it has run for long. Then what
        the trace comes to passes on a target that was just opened. So the trace is shrunk once
        more, and each program gets such a target."""
        in_process = self._bench.in_process
        whole = self._trace, self._verdict
        found = shrink(*whole, self.send, most_seconds, in_process, self.hurried)
        if not found.failed or found.interrupted:
            return found
        self._anew = True
        try:
            times = sends(found.failed / found.repeats)
            if any(self.send(found.trace.program) for _ in range(times)):
                self._anew = False
                return found
        except KeyboardInterrupt:
            return replace(found, interrupted=True)
        anew = shrink(*whole, self.send, most_seconds, in_process)
        if anew.failed or anew.interrupted:
            return anew
        if found.failed < found.repeats:  # it is flaky, and was not seen by chance
            self._anew = False
            return found
        told = replace(anew.verdict, actual=anew.verdict.actual + EARLIER)
        return replace(anew, verdict=told)

    def send(self, program: list[Message]) -> tuple[Trace, Verdict] | None:
        """Send a program; return its trace and verdict if it fails alike, else None."""
        return self.send_with(program, self._trace.options)

    def hurried(self, program: list[Message]) -> tuple[Trace, Verdict] | None:
        """Do the same as `send`, with less time for an answer: one that never comes is waited for
        as long."""
        self._bench.hurried = True
        try:
            return self.send(program)
        finally:
            self._bench.hurried = False

    def send_with(
        self, program: list[Message], options: Mapping[str, Any]
    ) -> tuple[Trace, Verdict] | None:
        """Do the same as `send`, on a target with other options."""
        if self._anew:
            self._bench.clear()
        again = self._bench.drive(program, self._trace.seed, options)
        if not _may_be(self._verdict.kind, again):
            return None
        found = self._judged(again)
        return (again, found) if found.verdict == "fail" and alike(found, self._verdict) else None


def _may_be(kind: str, trace: Trace) -> bool:
    """Return whether the trace may contain a failure of this class. A judge may take long to
    decide."""
    if kind in OF_DIALOGUE:
        return any(event.get("failure", {}).get("kind") == kind for event in trace.events)
    if kind == "scrub":
        return any((event["result"] or {}).get("problems") for event in trace.events)
    return True
