"""The oracle that is TLC: each trace is followed through specs/TraceVirtualDisk.tla.

If its requests overlap, it is followed through specs/TraceOverlappingDisk.tla.
"""

from collections import defaultdict
from collections.abc import Sequence

from conformance.contract.trace import Trace
from conformance.judging.oracles import Opinion
from conformance.judging.oracles.spec_lines import Line, overlapping, sequential
from modelcheck.checkers import tlc
from modelcheck.runs import traces

LARGEST_DISK = 1 << 16  # blocks; TLC keeps a state an event, each with every block in it
MOST_STATES = 50_000  # states of one trace whose requests overlap
SPECS = {False: "TraceVirtualDisk", True: "TraceOverlappingDisk"}


def judge(batch: Sequence[Trace]) -> list[Opinion]:
    """Return one opinion per trace, in their order; one run of TLC for each spec and crash profile
    among them.
    """
    opinions = [Opinion(None)] * len(batch)
    groups = defaultdict(list)
    for index, trace in enumerate(batch):
        if trace.events[0].get("blocks", 0) > LARGEST_DISK:
            reason = f"the disk has more than {LARGEST_DISK} blocks: too many for TLC"
            opinions[index] = Opinion(None, reason)
        else:
            groups[SPECS[trace.overlapping], profile_of(trace)].append(index)
    for (spec, profile), indices in sorted(groups.items()):
        given = _followed([batch[index] for index in indices], spec, profile)
        for index, opinion in zip(indices, given, strict=True):
            opinions[index] = opinion
    return opinions


def profile_of(trace: Trace) -> str:
    """Return the trace's crash profile."""
    return trace.hello.get("crash_profile") or "ack"


def _followed(batch: Sequence[Trace], spec: str, profile: str) -> list[Opinion]:
    most = MOST_STATES if spec == SPECS[True] else None
    inputs = [_lines(trace) for trace in batch]
    try:
        result = traces.run([lines for lines, _ in inputs], spec, f"{spec}-{profile}", most=most)
        reached = traces.reached_in(result, len(batch))
    except (tlc.Unavailable, traces.Inconclusive) as reason:
        return [Opinion(None, str(reason))] * len(batch)
    given_up = traces.given_up(result)
    return [
        _opinion(places, matched, index in given_up)
        for index, ((_, places), matched) in enumerate(zip(inputs, reached, strict=True))
    ]


def _lines(trace: Trace) -> tuple[list[Line], Sequence[int]]:
    if trace.overlapping:
        return overlapping(trace)
    lines = sequential(trace)
    return lines, range(len(lines) - 1)


def _opinion(places: Sequence[int], matched: int, given_up: bool) -> Opinion:
    if matched == len(places):
        return Opinion(None)
    if given_up:
        return Opinion(None, f"more than {MOST_STATES} states: use fewer requests in flight")
    return Opinion(places[matched])
