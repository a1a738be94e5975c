"""Three judges, one verdict: the certified checker, the Python model and TLC, on the same honest
and corrupted traces; where requests overlap, the certified checker and the search in Python.

`make proofs` runs it after the build. Exit status 1 where two of them name different events, or
too few operations were judged by all; each trace in dispute is kept, and named."""

import random
import sys
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from conformance.campaign.driver import drive
from conformance.contract import trace as traces
from conformance.contract.trace import Trace
from conformance.judging.oracles import Opinion, Oracle, named
from conformance.judging.orders import search
from conformance.programs import generate
from conformance.selftest import corrupt
from conformance.selftest.overlapping_histories import history
from conformance.targets.model import ModelTarget

PROFILES = ("ack", "prefix", "block")
FEWEST = 100_000  # operations that all three must have judged
KEPT = Path(__file__).parent / "build" / "disputed"
MOST_STEPS = 20_000  # of the search for an order, for one trace
# Where a read behind a power cut is refused, TLC takes each subset of the blocks that may be lost.
UNREAD = ("block", "refusal-without-a-fault")
FEW_BLOCKS = 16
IN_DOUBT = {"ok": False, "error": "unknown-outcome"}
DOUBTFUL = ("write", "unmap", "snapshot", "delete", "revert", "flush")
# Operations of a trace. Each doubles the disks that are possible, until a read. A power cut adds a
# disk for each point at which it may have come, and the certified checker keeps equal ones.
MOST_IN_DOUBT = 8


def driven(profile: str, seed: int, count: int, ops: int) -> list[Trace]:
    """Traces of the contract itself, with crashes and operations cut short."""
    target = ModelTarget({"profile": profile, "seed": seed})
    programs = generate.programs(target.hello, ops, seed, cuts=True)
    return [drive(target, program) for program in islice(programs, count)]


def scrambled(trace: Trace, step: int) -> Trace:
    """Return the trace with one answer of another kind, or the data of one read from another. It
    may still be allowed."""
    events = list(trace.events)
    at = 1 + (7 * step + 13 * len(events)) % (len(events) - 1)
    event = events[at]
    if event["op"] == "read" and event["result"] and event["result"]["ok"]:
        other = [
            e["result"]["tags"]
            for e in events
            if e["op"] == "read"
            and e["result"]
            and e["result"]["ok"]
            and e["count"] == event["count"]
        ]
        result = {"ok": True, "tags": other[step % len(other)]}
    else:
        result = {"ok": False, "error": ("unknown-outcome", "no-space", "data-lost")[step % 3]}
    events[at] = {**event, "result": result}
    return Trace(trace.hello, events, trace.seed, trace.options)


def doubtful(trace: Trace) -> Trace:
    """Return the trace with every fifth operation of unknown outcome, as far as a judge can follow
    all disks that are possible then.
    """
    unknown = [i for i, event in enumerate(trace.events) if i % 5 == 0 and event["op"] in DOUBTFUL]
    events = list(trace.events)
    for i in unknown[:MOST_IN_DOUBT]:
        events[i] = {**events[i], "result": IN_DOUBT}
    return Trace(trace.hello, events, trace.seed, trace.options)


def undeclared(trace: Trace, number: int) -> Trace:
    """Return the trace with one capability less declared, and its operation refused once, or
    always."""
    lacking = ("unmap", "flush", "snapshot", "delete", "revert", "restart")[number % 6]
    hello = {
        **trace.hello,
        "capabilities": [name for name in trace.hello["capabilities"] if name != lacking],
    }
    events = [
        {**event, "result": {"ok": False, "error": "unsupported"}}
        if event["op"] == lacking and (number % 2 or i % 3)
        else event
        for i, event in enumerate(trace.events)
    ]
    return Trace(hello, events, trace.seed, trace.options)


def cases(count: int, ops: int) -> Iterator[tuple[str, Trace]]:
    """Return the traces with their names: `count` honest ones of each profile, and the traces made
    from them."""
    for profile in PROFILES:
        for number, trace in enumerate(driven(profile, 7, count, ops)):
            yield f"{profile}-{number}-honest", trace
            for kind in corrupt.KINDS:
                if (profile, kind) == UNREAD and trace.events[0]["blocks"] > FEW_BLOCKS:
                    continue
                if (made := corrupt.corrupt(trace, kind, number)) is not None:
                    yield f"{profile}-{number}-{kind}", made.trace
            for step in range(3):
                yield f"{profile}-{number}-scrambled-{step}", scrambled(trace, step)
            yield f"{profile}-{number}-undeclared", undeclared(trace, number)
        for number, trace in enumerate(driven(profile, 19, count // 3, ops)):
            yield f"{profile}-{number}-doubtful", doubtful(trace)


def disputed(
    batch: list[Trace], judges: dict[str, Oracle]
) -> tuple[dict[int, str], list[dict[str, Opinion]]]:
    """Return the traces on which judges differ, with the opinions, and all opinions by trace."""
    given = {name: judge(batch) for name, judge in judges.items()}
    said = [{name: opinions[i] for name, opinions in given.items()} for i in range(len(batch))]
    return {
        i: "; ".join(f"{name}: {words(opinion)}" for name, opinion in each.items())
        for i, each in enumerate(said)
        if len({(o.at, bool(o.unsure)) for o in each.values()}) > 1
    }, said


def words(opinion: Opinion) -> str:
    return opinion.unsure or (
        "all allowed" if opinion.at is None else f"operation {opinion.at} is not allowed"
    )


def histories() -> Iterator[Trace]:
    """Requests that overlap, in all profiles and both granularities; many histories are wrong."""
    for seed in count():
        choose = random.Random(seed)
        in_flight, wrong = choose.choice([2, 4, 6]), choose.choice([0, 0, 0.02, 0.1])
        yield history(
            choose, choose.choice([8, 12, 20]), choose.choice([2, 3, 5]), in_flight, wrong
        )


def orders_agree() -> bool:
    """Return whether the certified checker and the search for an order in Python accept the same
    histories, of FEWEST operations that both have judged. Print their opinions."""
    began = time.monotonic()
    operations = traces_judged = rejected = undecided = elsewhere = 0
    stream = histories()
    while operations < FEWEST:
        batch = list(islice(stream, 500))
        for trace, mine in zip(batch, named("certified")(batch), strict=True):
            other = search.judge(trace, MOST_STEPS)
            if mine.unsure or other.unsure:
                undecided += 1
                continue
            traces_judged, operations = traces_judged + 1, operations + trace.operations
            rejected += mine.at is not None
            elsewhere += mine.at != other.at
            if (mine.at is None) != (other.at is None):
                KEPT.mkdir(parents=True, exist_ok=True)
                traces.write(trace, KEPT / f"overlapping-{traces_judged}.jsonl")
                print(
                    f"BROKEN  agreement: {KEPT}/overlapping-{traces_judged}.jsonl: "
                    f"certified: {words(mine)}; search: {words(Opinion(other.at))}"
                )
                return False
    print(
        f"ok      agreement: certified and the search for an order say the same of "
        f"{operations:,} operations that overlap in {traces_judged:,} traces, {rejected:,} of them "
        f"rejected ({elsewhere} at another operation); {undecided} undecided "
        f"({time.monotonic() - began:.0f} s)"
    )
    return True


def main() -> int:
    began = time.monotonic()
    names, batch = map(list, zip(*cases(40, 60), strict=True))
    found, said = disputed(batch, {name: named(name) for name in ("certified", "model", "tlc")})
    sure = [
        i for i, each in enumerate(said) if not any(opinion.unsure for opinion in each.values())
    ]
    operations = sum(batch[i].operations for i in sure)
    rejected = sum(said[i]["certified"].at is not None for i in sure)
    for i, text in found.items():
        KEPT.mkdir(parents=True, exist_ok=True)
        traces.write(batch[i], KEPT / f"{names[i]}.jsonl")
        print(f"BROKEN  agreement: {KEPT / names[i]}.jsonl: {text}")
    if operations < FEWEST:
        print(
            f"BROKEN  agreement: only {operations:,} operations were judged by all "
            f"(at least {FEWEST:,})"
        )
    if found or operations < FEWEST or not orders_agree():
        return 1
    print(
        f"ok      agreement: certified, model and tlc say the same of {operations:,} operations "
        f"in {len(sure):,} traces, {rejected:,} of them rejected; "
        f"{len(batch) - len(sure)} undecided ({time.monotonic() - began:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
