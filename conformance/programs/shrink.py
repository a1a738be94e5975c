"""Shrink a failing program: search for a short program that fails in the same way.

The search first removes requests, then lets one request do the work of several, then makes the
requests that are left simpler. No candidate is tried twice. Runs of requests are removed
adaptively: the length of a run grows while the rest still fails (`find_integer` of MacIver and
Donaldson, "Test-case reduction via test-case generation", ECOOP 2020), so a program of n requests
of which k matter takes about k log(n/k) candidates.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

from conformance.contract.trace import Event, Trace
from conformance.judging.explain import Verdict
from conformance.judging.explain_overlap import drawn
from conformance.programs.patience import Attempt, Patience, processor_clock
from conformance.programs.simpler import (
    LEAST_SHAPES,
    SPARED,
    Request,
    fewer_in_flight,
    groups,
    reshaped,
    sent_beyond_tolerance,
    simpler,
    stand_ins,
    windows,
    without,
)

MOST_SECONDS = 60.0
REPEATS = 10  # times that a program is sent to say how often it fails
FIRST_REPEATS = 3  # times that the whole program is sent: one that always fails is not flaky
FIRST_SHARE = 0.1  # of the time limit, that the first repeats may take
LAST_SECONDS = 1.0  # that the last repeats may take
MISSED = 0.05  # chance that a flaky failure is missed because it was sent too seldom
WINDOW = 64  # requests at most before a failure that are tried alone, in so many SHAPES
SHAPES = 30
FEW = 40  # requests: so few are also removed two at a time
PARTS = 16  # of a longer program, of which each is left out in turn,
SHORTER = 0.75  # again if so much of the program was left
SHORT = 8  # requests that need not become fewer by other requests in their place


@dataclass(frozen=True)
class Shrunk:
    """What shrinking found.

    `trace` is the shortest trace that failed, and `verdict` its verdict. `failed` of `repeats`
    times the same program failed again. `timed_out`: the time limit ended the search."""

    trace: Trace
    verdict: Verdict
    failed: int
    repeats: int
    timed_out: bool = False
    interrupted: bool = False

    @property
    def unfinished(self) -> bool:
        """True if a shorter trace may be found: the search ended early, or what failed was not seen
        again."""
        return self.timed_out or self.interrupted or not self.failed


def shrink(
    trace: Trace,
    verdict: Verdict,
    attempt: Attempt,
    most_seconds: float = MOST_SECONDS,
    in_process: bool = False,
    hurried: Attempt | None = None,
) -> Shrunk:
    """Return the shortest failing trace found within `most_seconds`.

    For a target `in_process` they are CPU seconds: on a busy machine the search then
    goes as far as on an idle one, in up to five times as many seconds of the wall clock.

    `attempt` sends a program, and returns its trace and verdict if it fails alike, else None.
    `hurried` does the same, but takes what is slow for what hangs. So what it found is sent once
    more at the end, and the trace stays as it was unless that hangs, too. Ctrl-C ends the search
    early; the result then has `interrupted`."""
    return _Search(trace, verdict, attempt, most_seconds, in_process, hurried).run()


class _OutOfTime(Exception):
    """The time limit has passed."""


class _Search:
    """The state of one search: the shortest failing program so far, and what was tried."""

    def __init__(
        self,
        trace: Trace,
        verdict: Verdict,
        attempt: Attempt,
        most_seconds: float,
        in_process: bool,
        hurried: Attempt | None,
    ) -> None:
        self._best = replace(trace, events=to_failure(trace, verdict)), verdict
        self._program = self._best[0].program
        self._clock = processor_clock() if in_process else time.monotonic
        hangs = verdict.kind == "hang"
        self._patient = Patience(attempt, self._clock, hangs).send
        self._hurried = Patience(hurried, self._clock, hangs).send if hurried and hangs else None
        self._attempt = self._patient
        self._started = self._clock()
        self._most_seconds = most_seconds
        self._sends = 1  # of each candidate; more if the failure is flaky
        self._shapes = trace.overlapping  # whether a shorter candidate is tried in others, too
        self._tried: set[str] = set()

    def run(self) -> Shrunk:
        failed, repeats, timed_out, interrupted = 0, 0, False, False
        whole = self._best
        try:
            failed, repeats = first = self._first_repeats()
            self._attempt = self._hurried or self._patient
            try:
                if not failed and self._comes_back():
                    failed, repeats = 1, REPEATS  # how often is not known: seldom
                if failed:
                    self._sends = sends(failed / repeats)
                    self._search()
            except _OutOfTime:
                timed_out = True
            self._attempt = self._patient
            if failed:
                failed, repeats = self._last_repeats()
            if self._hurried and not failed:  # it was slow, and no more
                self._best, (failed, repeats), timed_out = whole, first, True
        except KeyboardInterrupt:
            interrupted = True
            self._best = whole if self._hurried else self._best
        trace, verdict = self._best
        return Shrunk(trace, drawn(trace, verdict), failed, repeats, timed_out, interrupted)

    def _comes_back(self) -> bool:
        """Return whether the last requests before a failure that was not seen again, or all of
        them, fail in another shape. If so, they become the program. Raises _OutOfTime."""
        base = self._program[: self._called()]
        return any(
            self._one_fails(shape)
            for candidate in (*windows(base, len(base)), base)
            for shape in reshaped(candidate, SHAPES if len(candidate) <= WINDOW else LEAST_SHAPES)
        )

    def _search(self) -> None:
        """Shorten until nothing helps any more. Raises _OutOfTime.

        What fails with one request in flight too, or without power cuts in requests, is easier to
        explain, and much easier to shorten. Where requests overlap, most can only be removed in
        another shape. In other programs few need that, so it comes later: to try other shapes takes
        several times as long."""
        any(self._fails(candidate) for candidate in fewer_in_flight(self._program))
        for field in SPARED:
            self._fails(without(self._program, field))
        self._cut_behind_failure()
        self._keep_window()
        self._remove_groups()
        self._remove_parts()
        self._remove_runs()
        self._shapes = True
        before = None
        while before != self._program:
            before = self._program
            self._cut_behind_failure()
            self._remove_groups()
            self._remove_runs()
            if SHORT < len(self._program) <= FEW:
                self._replace_runs()
            self._simplify()
            if len(self._program) <= FEW:
                self._remove_pairs()

    def _cut_behind_failure(self) -> None:
        """Remove the requests that were called after the wrong answer: they did not cause it."""
        self._fails(self._program[: self._called()])

    def _called(self) -> int:
        """Return how many requests were called before the wrong answer came."""
        trace, verdict = self._best
        answered = trace.events[verdict.at].get("answered") if verdict.at is not None else None
        if answered is None:
            return len(self._program)
        return sum(event["called"] < answered for event in trace.events)

    def _keep_window(self) -> None:
        """Keep the last requests alone, if they fail in any of many shapes.

        A failure that needs one order of many, or one power cut of many, is rare in all shapes of a
        program, but many shapes of a short program take no longer than a few of a long one."""
        for window in windows(self._program, len(self._program)):
            shapes = reshaped(window, SHAPES) if len(window) <= WINDOW else ()
            if self._fails(window) or any(self._one_fails(shape) for shape in shapes):
                return

    def _remove_parts(self) -> None:
        """Leave out one part in PARTS of a long program after the other, from the end to the
        beginning, and again as long as that makes it much shorter. A long program is slow to send,
        and single requests of it are many."""
        before = math.inf
        while FEW < len(self._program) <= SHORTER * before:
            before = end = len(self._program)
            part = math.ceil(before / PARTS)
            while end > 1:
                base, start = self._program, max(1, end - part)
                self._fails(base[:start] + base[end:])
                end = min(start, len(self._program))

    def _remove_groups(self) -> None:
        """Remove requests that belong together, such as all that name one snapshot."""
        for chosen in groups(self._program):
            base = self._program
            rest = [base[0], *(request for request in base[1:] if not chosen(request))]
            self._fails(rest)

    def _remove_runs(self) -> None:
        """Remove runs of requests from the end to the beginning, each as long as possible."""
        end = len(self._program)
        while end > 1:
            end = min(end - self._longest_run(end) - 1, len(self._program))

    def _longest_run(self, end: int) -> int:
        """Remove the longest run before `end` without which the program still fails. Return its
        length."""
        base = self._program
        return _longest(lambda run: run < end and self._fails(base[: end - run] + base[end:]))

    def _replace_runs(self) -> None:
        """Replace runs by one request each, from the end to the beginning, as long as possible."""
        for request in stand_ins(self._program, self._best[0].hello["capabilities"]):
            end = len(self._program)
            while end > 2:
                self._replace_run(end, request)
                end = min(end - 1, len(self._program))

    def _replace_run(self, end: int, request: Request) -> None:
        """Replace the longest run before `end` for which the program still fails by the request."""
        base = self._program

        def replaced(run: int) -> bool:
            start = end - run - 1  # of at least two requests
            return start > 0 and self._fails([*base[:start], request, *base[end:]])

        _longest(replaced)

    def _remove_pairs(self) -> None:
        """Remove two requests at once: a snapshot and its deletion, a failure and a return."""
        found = True
        while found:
            base = self._program
            found = any(
                self._fails([request for at, request in enumerate(base) if at not in pair])
                for pair in combinations(range(len(base) - 1, 0, -1), 2)
            )

    def _simplify(self) -> None:
        """Make requests simpler one at a time."""
        while any(self._fails(candidate) for candidate in simpler(self._program)):
            pass

    def _fails(self, candidate: list[Request]) -> bool:
        """Return whether the candidate, or another shape of it, fails in the same way. If so, it
        becomes the program.

        Raises _OutOfTime."""
        return self._one_fails(candidate) or (
            self._shapes
            and len(candidate) < len(self._program)
            and any(self._one_fails(shape) for shape in reshaped(candidate))
        )

    def _one_fails(self, candidate: list[Request]) -> bool:
        """Return whether the candidate fails in the same way. If so, it becomes the program. Raises
        _OutOfTime."""
        key = json.dumps(candidate)
        if key in self._tried or candidate == self._program:
            return False
        if self._beyond_tolerance(candidate) > self._beyond_tolerance(self._program):
            return False
        if self._clock() - self._started > self._most_seconds:
            raise _OutOfTime
        self._tried.add(key)
        return any(self._sent(candidate) for _ in range(self._sends))

    def _beyond_tolerance(self, program: list[Request]) -> int:
        hello = self._best[0].hello
        return sent_beyond_tolerance(program, hello.get("tolerates", 0), hello.get("spares", 0))

    def _sent(self, candidate: list[Request]) -> bool:
        """Send a candidate once; it becomes the program if it fails alike."""
        outcome = self._attempt(candidate)
        if outcome is None:
            return False
        trace, verdict = outcome
        events = to_failure(trace, verdict)
        reached = replace(trace, events=events).program
        self._best = (replace(trace, events=events), verdict)
        self._program = reached if len(reached) < len(candidate) else candidate
        return True

    def _first_repeats(self) -> tuple[int, int]:
        """Return how often the whole program failed, and how often it was sent."""
        failed, repeats, most = 0, 0, FIRST_REPEATS
        while repeats < most:
            failed += self._sent(self._program)
            repeats += 1
            if failed < repeats:
                most = REPEATS
            if self._clock() - self._started > FIRST_SHARE * self._most_seconds:
                break
        return failed, repeats

    def _last_repeats(self) -> tuple[int, int]:
        """Return how often the shortest program failed, and how often it was sent."""
        failed, repeats, ends = 0, 0, self._clock() + LAST_SECONDS
        while repeats < REPEATS and (not repeats or self._clock() < ends):
            failed += self._sent(self._program)
            repeats += 1
        return failed, repeats


def sends(rate: float) -> int:
    """Return how often to send a program that fails at this rate, so that the chance to miss the
    failure is at most MISSED."""
    return 1 if rate == 1 else min(REPEATS, math.ceil(math.log(MISSED) / math.log(1 - rate)))


def _longest(fits: Callable[[int], bool]) -> int:
    """Return a length that fits while the next does not (doubling, then halving), or 0."""
    if not fits(1):
        return 0
    fitting = 1
    while fits(2 * fitting):
        fitting *= 2
    too_long = 2 * fitting
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        if fits(middle):
            fitting = middle
        else:
            too_long = middle
    return fitting


def to_failure(trace: Trace, verdict: Verdict) -> list[Event]:
    """Return the events up to the failure.

    All, if requests overlap: what is called after a failure may be what makes it happen."""
    if verdict.at is None or trace.overlapping:
        return trace.events
    return trace.events[: verdict.at + 1]
