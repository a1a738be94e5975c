"""The figures of a campaign in words, and its coverage as rows."""

from collections.abc import Sequence

from conformance.campaign.results import OUTCOMES, Campaign
from conformance.contract.coverage import Outcome, missing_pairs
from conformance.contract.trace import OVERLAPPING, Trace

COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
MANY = 20  # power cuts within operations: if the kit could cut one that is alone, it would have


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 trace` or `92 operations`."""
    plural = "crashes" if noun == "crash" else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def figures(campaign: Campaign) -> str:
    """Return one line: how much was run, who judged it, what was left out."""
    found = [
        counted(len(campaign.judged), "trace"),
        counted(campaign.operations, "operation"),
        counted(campaign.crashes, "crash"),
        f"{campaign.seconds:.1f} s",
        f"seed {campaign.seed}",
    ]
    if campaign.resumed:
        found.insert(0, f"{campaign.resumed:,} of the workloads had passed before")
    if campaign.workloads:
        found.insert(0, f"{campaign.workloads:,} workloads, {campaign.states:,} crash states")
    if campaign.interrupted:
        found.insert(0, "interrupted")
    if campaign.judges:
        found.append(judges(campaign))
    for name, times in campaign.undecided.items():
        found.append(f"{counted(times, 'trace')} undecided by {name}")
    if campaign.faults:
        found.append(f"with {', '.join(campaign.faults)}: {excused(campaign)}")
    if campaign.overlap:
        found.append(campaign.overlap.words)
    if campaign.skipped:
        found.append("skipped: " + ", ".join(campaign.skipped))
    return ", ".join(found)


def judges(campaign: Campaign) -> str:
    """Return who judged, and how to have the certified checker if it did not."""
    text = "judge: " + ", ".join(campaign.judges)
    if "certified" in campaign.judges:
        return text
    return text + " (optional: the certified checker, which `make proofs` builds)"


def excused(campaign: Campaign) -> str:
    """Return what the faults of the media excused."""
    kinds = ", ".join(f"{kind} {times}" for kind, times in campaign.excused.most_common() if times)
    if not kinds:
        return "nothing excused"
    return (
        f"{counted(campaign.excused.total(), 'failure')} that an honest engine may show ({kinds})"
    )


def coverage(campaign: Campaign) -> list[tuple[str, str, int]]:
    """Return rows: an operation, an outcome, and how often it happened; 0 if it could have."""
    rows = [
        (op, outcome, times)
        for (op, outcome), times in campaign.coverage.items()
        if times or not impossible(campaign, op, outcome)
    ]
    place = {op: number for number, op in enumerate(OUTCOMES)}
    return sorted(rows, key=lambda row: (place.get(row[0], len(place)), row[1] != "ok", row[1]))


def impossible(campaign: Campaign, op: str, outcome: str) -> str:
    """Return why this outcome cannot happen to the target; empty if it can."""
    happened = campaign.coverage
    if op == "crash" and not any(happened[op, one] for one in OUTCOMES[op]):
        return "no power was cut"
    if outcome == "cut":
        cuts = {one: times for (one, what), times in happened.items() if what == "cut" and times}
        if not cuts:
            return "the kit cannot cut the power of this target within an operation"
        if op not in OVERLAPPING and cuts.keys() <= OVERLAPPING and sum(cuts.values()) >= MANY:
            return "the kit cuts the power of this target only while requests may overlap"
    if op == "read" and outcome == "no-such-snapshot" and "snapshot" not in campaign.declared:
        return "the target has no snapshots"
    if outcome == "no-space" and not any(happened[one, outcome] for one in OUTCOMES):
        return "only a disk that is full may answer this, and this one never was"
    return ""


def cannot_happen(campaign: Campaign) -> dict[str, list[str]]:
    """Return what cannot happen to the target: reason -> outcomes such as `write cut`."""
    found: dict[str, list[str]] = {}
    for (op, outcome), times in campaign.coverage.items():
        if not times and (reason := impossible(campaign, op, outcome)):
            found.setdefault(reason, []).append(f"{op} {outcome}")
    return found


def never_in_a_row(campaign: Campaign) -> list[tuple[Outcome, Outcome]]:
    """Return pairs of outcomes that both happened, and never one right after the other."""
    return missing_pairs(
        campaign.happened.pairs, (one for one, times in campaign.coverage.items() if times)
    )


def in_a_row(campaign: Campaign) -> str:
    """Return how many of the pairs of outcomes happened, in words."""
    happened, never = len(campaign.happened.pairs), len(never_in_a_row(campaign))
    text = f"{happened:,} of {happened + never:,} pairs of outcomes happened in a row"
    inside = campaign.happened.inside
    if not inside:
        return text
    pairs = len(campaign.happened.inside_pairs)
    return text + f"; inside the engine, {len(inside)} kinds of events in {pairs:,} pairs"


def unclear(campaign: Campaign) -> list[tuple[int, str]]:
    """Return the traces without a verdict, by number, and why."""
    return [
        (number, verdict.reason)
        for number, (_, verdict) in campaign.judged.items()
        if verdict.verdict == "inconclusive"
    ]


def how_much(judged: Sequence[Trace]) -> str:
    """Return how much was judged, such as `3 traces, 92 operations`."""
    operations = sum(trace.operations for trace in judged)
    return f"{counted(len(judged), 'trace')}, {counted(operations, 'operation')}"
