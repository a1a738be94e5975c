"""The worth of a `pass`: what was reached, what was not, and the chance that bugs are found.

The chance comes from the self-test, which plants bugs in the reference engines one at a time.
found_by_traces.json says how many traces it took the model or scrub to find each, or null if
neither did. A bug that took n traces is taken to be found by a trace with the chance 1/n.
"""

import json
from functools import cache
from importlib.resources import files

from conformance.campaign.batches import IN_FLIGHT
from conformance.campaign.results import OUTCOMES, Campaign
from conformance.programs.swarm import CAPABILITIES
from conformance.reports.summary import coverage, in_a_row

FOUND = "found_by_traces.json"
OPS = 30  # operations of the traces of the self-test
MORE_MINUTES = 10


def worth(campaign: Campaign) -> list[tuple[str, str]]:
    """Return what a pass is worth as named lines; nothing unless the campaign passed."""
    if campaign.verdict != "pass" or not campaign.judged or campaign.workloads:
        return []
    rows = coverage(campaign)
    never = [f"{op} {outcome}" for op, outcome, times in rows if not times and op in OUTCOMES]
    reached = len(rows) - len(never)
    traces, bugs = len(campaign.judged), len(_traces_to_find())
    ours = campaign.target.partition(":")[0] == "refmodel"
    where = "" if ours else " in the engines of this project"
    unlike = _unlike_the_self_test(campaign)
    text = [
        ("reached", f"{reached} of {len(rows)} outcomes of operations; {in_a_row(campaign)}"),
        ("never", ", ".join(never) or "nothing: every outcome happened"),
        (
            "worth",
            f"the chance to find a bug is not known: the self-test {unlike}"
            if unlike
            else f"{traces:,} such {'trace finds' if traces == 1 else 'traces find'} a bug of the "
            f"self-test with a chance of {percent(chance(traces))} ({bugs} planted bugs{where})",
        ),
    ]
    more = int(traces * 60 * MORE_MINUTES / campaign.seconds) if campaign.seconds else 0
    if more > traces and not unlike:
        text.append(
            (
                "more",
                f"--minutes {MORE_MINUTES} runs about {more:,} traces: a chance of "
                f"{percent(chance(more))}",
            )
        )
    return text


def _unlike_the_self_test(campaign: Campaign) -> str:
    """Return what the self-test did and the run did not; "" if nothing."""
    kind, _, options = campaign.target.partition(":")
    if campaign.without:
        return f"used {', '.join(campaign.without)}"
    if lacks := [name for name in campaign.skipped if name in CAPABILITIES]:
        return f"was of engines that offer {', '.join(lacks)}"
    if campaign.ops < OPS:
        return f"had traces of {OPS} operations and more"
    if not campaign.usual:
        return f"had power cuts and up to {IN_FLIGHT} requests in flight"
    if campaign.faults or kind == "refmodel" and "=" in options:
        return "was of all engines with all options, and injected no faults"
    return ""


def chance(traces: int) -> float:
    """Return the chance, from 0 to 1, that `traces` traces find one of the planted bugs."""
    found = _traces_to_find()
    missed = (1.0 if needed is None else (1 - 1 / needed) ** traces for needed in found)
    return 1 - sum(missed) / len(found)


def percent(chance: float) -> str:
    """Return a chance in words that never promise everything."""
    return f"{chance:.0%}" if chance < 0.995 else "over 99%"


@cache
def _traces_to_find() -> tuple[int | None, ...]:
    text = (files("conformance.reports") / FOUND).read_text(encoding="utf-8")
    return tuple(json.loads(text)["traces"].values())
