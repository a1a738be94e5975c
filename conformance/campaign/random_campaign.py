"""Campaigns: many traces, driven and judged in parts, and put together."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import replace

from conformance.campaign import interrupts
from conformance.campaign.attempts import Attempts
from conformance.campaign.batches import FAST, IN_FLIGHT, Part, Plan, judged
from conformance.campaign.driver import Bench
from conformance.campaign.results import MOST_FAILURES, OUTCOMES, Campaign, Failure
from conformance.campaign.saved.campaign_file import Kept
from conformance.campaign.usual_options import usual_names, with_usual_options
from conformance.campaign.workers import InProcess, Workers
from conformance.contract.coverage import too_little
from conformance.contract.trace import Trace
from conformance.judging.explain import Verdict
from conformance.judging.explain_overlap import drawn
from conformance.judging.oracles import INNER, Oracle
from conformance.judging.verdict import alike
from conformance.programs import swarm
from conformance.targets import Factory
from conformance.targets.base import Unusable

SHRINK_SECONDS = 60.0  # at most
SHRINK_AGAIN_SECONDS = 10.0  # at most, what most likely is shrunk already


def parts_of(ops: int, oracles: Mapping[str, Oracle], count: int | None) -> int | None:
    """Return the number of parts of a campaign of `count` traces; None if `count` is None."""
    return count and -(-count // Plan("", frozenset(), 0, ops, True, tuple(oracles), 0).length)


def campaign(
    factory: Factory,
    *,
    count: int | None,
    ops: int,
    seed: int,
    oracles: Mapping[str, Oracle],
    crashes: bool = True,
    faulty: tuple[str, ...] = (),
    progress: Callable[[Campaign], None] = lambda result: None,
    found: Callable[[Campaign], None] = lambda result: None,
    most_failures: int = MOST_FAILURES,
    workers: Workers | None = None,
    minutes: float | None = None,
    kept: Kept | None = None,
    in_flight: int = IN_FLIGHT,
) -> Campaign:
    """Generate, drive and judge `count` traces of about `ops` operations each; without end if None.

    The same seed makes the same programs, with any `workers`. Ends after `most_failures` failures,
    or one where the target hangs; each is shrunk. `faulty` names faults of the media, which the
    factory has put there: what they excuse is no failure. Ends after `minutes`, too, and when it is
    interrupted. A target that takes several requests at a time gets up to `in_flight` in every
    second trace, unless faults are beyond what it tolerates: what these excuse is known for one
    request at a time. `kept` goes on behind the last part that was whole. `found` is called when
    the last of the failures is new, and again when it is shrunk.
    """
    plan = Plan(
        factory.name,
        factory.without,
        seed,
        ops,
        crashes,
        tuple(oracles),
        most_failures,
        faulty,
        in_flight,
    )
    how = f" --faults {','.join(faulty)}" if faulty else ""
    result = Campaign(
        factory.name,
        seed,
        ops,
        most_failures=most_failures,
        without=tuple(sorted(factory.without)),
        faults=faulty,
        usual=crashes and in_flight >= IN_FLIGHT,
        how=how,
        judges=tuple(name for name in oracles if name != INNER),
    )
    started = time.monotonic()
    until = None if minutes is None else time.time() + 60 * minutes
    in_part = None if kept else until  # only whole parts are kept on file
    first = kept.resume(plan, result, oracles) if kept else 0
    before = result.seconds
    bench = Bench(factory)
    workers = workers or InProcess(factory, oracles)
    try:
        interrupts.look()  # one may have come while kept failures were sent
        for number, part in () if _enough(result) else workers.parts(plan, first, count, in_part):
            _merge(result, part, number * plan.length, plan, bench, oracles, progress, found)
            result.seconds = before + time.monotonic() - started
            if kept and part.whole and not part.interrupted:
                kept.save(plan, result, number + 1)
            progress(result)
            result.interrupted |= part.interrupted  # what others have begun is still to come
            if part.reason or _enough(result) or until is not None and time.time() >= until:
                break
    except KeyboardInterrupt:
        result.interrupted = True
    except Unusable as error:  # it was not, when the failure was found that is shrunk
        result.reason, result.output = f"the target is unusable: {error.message}", error.output
    except BrokenExecutor as error:
        result.reason = f"a process that drives traces has ended: {error}"
    finally:
        bench.clear()
        workers.close()
    _never(result)
    if not result.failures and not faulty:
        result.reason = result.reason or too_little(result.coverage)
    result.seconds = before + time.monotonic() - started
    return result


def _merge(
    result: Campaign,
    part: Part,
    first: int,
    plan: Plan,
    bench: Bench,
    oracles: Mapping[str, Oracle],
    progress: Callable[[Campaign], None],
    found: Callable[[Campaign], None],
) -> None:
    """Add the results of the part whose first trace has the number `first`."""
    at_once = {name: oracle for name, oracle in oracles.items() if name in FAST}
    shrinks = bool(at_once) and not part.interrupted  # who interrupts does not wait for that
    result.happened.merge(part.coverage)
    result.counters.update(part.counters)
    result.declared |= part.declared
    result.unasked |= part.unasked
    result.reason, result.output = part.reason, part.output
    if part.inside and INNER in oracles and INNER not in result.judges:
        result.judges += (INNER,)
    for number, (trace, verdict) in enumerate(part.judged, first):
        result.judged[number] = trace, verdict
        result.excused[verdict.kind] += bool(verdict.excuse)
        if verdict.verdict == "fail" and isinstance(trace, Trace):
            told = drawn(trace, verdict)
            result.failures.append(
                Failure(trace, told, number, trace.operations, repeats=0, unfinished=True)
            )
            if shrinks and judged([trace], at_once, plan.faults)[0].verdict == "fail":
                result.shrinking = True
                progress(result)
                found(result)
                _shrink(bench, result, trace, verdict, number, at_once)
                result.shrinking = False
            found(result)
            if _enough(result):
                return


def _never(result: Campaign) -> None:
    """Add outcomes that never happened, though the target declares their operations, with count 0.

    Capabilities that it does not declare were skipped. If no trace ran, neither is known.
    """
    for kind, need in swarm.NEEDS.items():
        if need is None or need in result.declared:
            for outcome in OUTCOMES[kind]:
                result.coverage[kind, outcome] += 0
    if result.judged:
        names = sorted({*swarm.CAPABILITIES, *result.unasked})
        result.skipped = [name for name in names if name not in result.declared]


def _cut_behind(
    trace: Trace, verdict: Verdict, judge: Callable[[Trace], Verdict]
) -> tuple[Trace, Verdict]:
    """Return a trace that never failed again, without what was called after the failure.

    As it is, if it would not fail so."""
    end = None if verdict.at is None else trace.events[verdict.at].get("answered")
    if end is None:
        return trace, verdict
    events = [event for event in trace.events if event["called"] < end]
    shorter = replace(trace, events=events, inside=[one for one in trace.inside if one["at"] < end])
    found = judge(shorter)
    same = found.verdict == "fail" and alike(found, verdict)
    return (shorter, drawn(shorter, found)) if same else (trace, verdict)


def _enough(result: Campaign) -> bool:
    return len(result.failures) >= result.most_failures or any(
        f.verdict.kind == "hang" for f in result.failures
    )


def _shrink(
    bench: Bench,
    result: Campaign,
    trace: Trace,
    verdict: Verdict,
    number: int,
    oracles: Mapping[str, Oracle],
) -> None:
    """Shrink the last failure of the result.

    A failure of a class that was met before most likely is the same bug, so it gets less time.
    Raises KeyboardInterrupt once what was found is in the result."""
    met = any(failure.verdict.kind == verdict.kind for failure in result.failures[:-1])

    attempts = Attempts(
        bench, trace, verdict, lambda again: judged([again], oracles, result.faults)[0]
    )
    seconds = SHRINK_AGAIN_SECONDS if met else SHRINK_SECONDS
    found = attempts.shrunk(seconds)
    found = with_usual_options(found, bench.usual, attempts.send_with)
    shown = found.trace, found.verdict
    if not found.failed and found.trace.overlapping:
        shown = _cut_behind(*shown, lambda one: judged([one], oracles, result.faults)[0])
    result.failures[-1] = Failure(
        *shown,
        number,
        trace.operations,
        found.failed,
        found.repeats,
        found.unfinished,
        usual_names(found.trace, bench.usual),
    )
    if found.interrupted:
        raise KeyboardInterrupt
