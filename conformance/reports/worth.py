"""The worth of a `pass`: what was reached, what was not, and the chance that bugs are found.

The chance comes from the self-test, which plants bugs in the reference engines one at a time.
found_by_traces.json says how many traces it took the model or scrub to find each, or null if
neither did, and which capabilities the shortest trace that shows it needs. A bug that took n traces
is taken to be found by a trace with the chance 1/n, where a target declares what that trace needs.
"""

import json
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from conformance.campaign.batches import IN_FLIGHT as MOST_IN_FLIGHT
from conformance.campaign.results import OUTCOMES, Campaign
from conformance.programs.swarm import CAPABILITIES, IN_FLIGHT
from conformance.reports.summary import coverage, in_a_row

FOUND = "found_by_traces.json"
OPS = 30  # operations of the traces of the self-test
MORE_MINUTES = 10
# Bugs that were planted in engines of others, and those of them that were found: docs/self-test.md.
ELSEWHERE, FOUND_ELSEWHERE = 1626, 1287


class Planted(NamedTuple):
    """A planted bug: the traces to find it, None if it was not found, and what shows it needs."""

    traces: int | None
    needs: frozenset[str]


def worth(campaign: Campaign) -> list[tuple[str, str]]:
    """Return what a pass is worth as named lines; nothing unless the campaign passed."""
    if campaign.verdict != "pass" or not campaign.judged or campaign.workloads:
        return []
    rows = coverage(campaign)
    never = [f"{op} {outcome}" for op, outcome, times in rows if not times and op in OUTCOMES]
    reached = len(rows) - len(never)
    return [
        ("reached", f"{reached} of {len(rows)} outcomes of operations; {in_a_row(campaign)}"),
        ("never", ", ".join(never) or "nothing: every outcome happened"),
        *_chances(campaign),
    ]


def _chances(campaign: Campaign) -> list[tuple[str, str]]:
    """Return the chance that so many traces find a bug of the self-test, and that more do."""
    lacks = _lacks(campaign)
    bugs = [bug for bug in planted() if not bug.needs & lacks]
    unlike = _unlike_the_self_test(campaign)
    if not bugs:
        unlike = unlike or f"has no bug that shows without {', '.join(sorted(lacks))}"
    if unlike:
        return [("worth", f"the chance to find a bug is not known: the self-test {unlike}")]
    traces = len(campaign.judged)
    ours = campaign.target.partition(":")[0] == "refmodel"
    engines = "" if ours else " in our engines"
    which = f"{len(bugs)}{engines}"
    if lacks:
        others = f"{len(planted()) - len(bugs)} others need some of these"
        which += f" that show without {', '.join(sorted(lacks))}; {others}"
    lines = [
        (
            "worth",
            f"{traces:,} such {'trace finds' if traces == 1 else 'traces find'} a planted bug with "
            f"a chance of {percent(chance(bugs, traces))} (one of {which})",
        )
    ]
    if not ours:
        lines.append(
            (
                "others",
                f"in engines of others {FOUND_ELSEWHERE:,} of {ELSEWHERE:,} planted bugs were "
                f"found ({percent(FOUND_ELSEWHERE / ELSEWHERE)}), mostly with 20 to 300 traces",
            )
        )
    more = int(traces * 60 * MORE_MINUTES / campaign.seconds) if campaign.seconds else 0
    if more > traces:
        odds = percent(chance(bugs, more))
        lines.append(
            ("more", f"--minutes {MORE_MINUTES} runs about {more:,} traces: a chance of {odds}")
        )
    return lines


def _lacks(campaign: Campaign) -> set[str]:
    """Return what the self-test uses, and this campaign did not."""
    lacks = {*campaign.without, *campaign.skipped} & {*CAPABILITIES}
    return lacks if IN_FLIGHT in campaign.declared else {*lacks, IN_FLIGHT}


def _unlike_the_self_test(campaign: Campaign) -> str:
    """Return what the self-test did and the run did not; "" if nothing."""
    kind, _, options = campaign.target.partition(":")
    if campaign.ops < OPS:
        return f"had traces of {OPS} operations and more"
    if not campaign.usual:
        return f"had power cuts and up to {MOST_IN_FLIGHT} requests in flight"
    if campaign.faults or kind == "refmodel" and "=" in options:
        return "was of all engines with all options, and injected no faults"
    return ""


def chance(bugs: Collection[Planted], traces: int) -> float:
    """Return the chance, from 0 to 1, that `traces` traces find one of these bugs."""
    missed = (1.0 if bug.traces is None else (1 - 1 / bug.traces) ** traces for bug in bugs)
    return 1 - sum(missed) / len(bugs)


def percent(chance: float) -> str:
    """Return a chance in words that never promise everything."""
    return f"{chance:.0%}" if chance < 0.995 else "over 99%"


@cache
def planted() -> tuple[Planted, ...]:
    """Return the planted bugs."""
    text = (files("conformance.reports") / FOUND).read_text(encoding="utf-8")
    bugs = json.loads(text)["bugs"].values()
    return tuple(Planted(bug["traces"], frozenset(bug["needs"])) for bug in bugs)
