"""The oracle that is TLC: each trace followed through specs/TraceVirtualDisk.tla."""

from collections.abc import Sequence
from typing import Any

from conformance.contract.trace import Event, Trace
from conformance.judging.oracles import Opinion
from modelcheck.checkers import tlc
from modelcheck.runs import traces

LARGEST_DISK = 1 << 16  # blocks; TLC keeps a state an event, each with every block in it
NEEDED = ("op", "blocks", "lba", "count", "tags", "fua", "view", "name", "device")


def judge(batch: Sequence[Trace]) -> list[Opinion]:
    """One opinion a trace, in their order; one run of TLC for each crash profile among them."""
    opinions: dict[int, Opinion] = {}
    for profile in sorted({profile_of(trace) for trace in batch}):
        indices = [i for i, trace in enumerate(batch) if profile_of(trace) == profile]
        small = [i for i in indices if batch[i].events[0]["blocks"] <= LARGEST_DISK]
        unsure = Opinion(None, f"the disk has more than {LARGEST_DISK} blocks: too many for TLC")
        opinions.update((i, unsure) for i in indices if i not in small)
        inputs = [_lines(batch[i]) for i in small]
        try:
            reached = traces.follow(inputs, "TraceVirtualDisk", f"TraceVirtualDisk-{profile}")
        except (tlc.Unavailable, traces.Inconclusive) as reason:
            opinions.update((i, Opinion(None, str(reason))) for i in small)
        else:
            for i, lines, matched in zip(small, inputs, reached, strict=False):
                opinions[i] = Opinion(None if matched == len(lines) - 1 else matched)
    return [opinions[i] for i in range(len(batch))]


def profile_of(trace: Trace) -> str:
    """The trace's crash profile."""
    return trace.hello.get("crash_profile") or "ack"


def _lines(trace: Trace) -> list[dict[str, Any]]:
    """What the specification reads of a trace, up to a failure of the target, which is no event of
    the contract.
    """
    lines: list[dict[str, Any]] = [{"trace": 1, "hello": trace.hello}]
    for event in trace.events:
        if "failure" in event:
            break
        lines.append(asked(event))
    return lines


def asked(event: Event) -> dict[str, Any]:
    """The operation and its result, as the Trace specs read them."""
    line = {key: event[key] for key in NEEDED if event.get(key) is not None}
    result = event["result"]
    if result is not None:
        line["result"] = {key: result[key] for key in ("ok", "error", "tags") if key in result}
    return line
