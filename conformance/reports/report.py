"""What a campaign looks like: on the terminal, as JSON, as JUnit, and in a folder."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import junitparser
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.campaign.random_campaign import shape
from conformance.campaign.results import OUTCOMES, Campaign, Failure
from conformance.contract import trace as traces
from conformance.contract.coverage import Outcome, missing_pairs
from conformance.contract.trace import Trace

COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
SAMPLE = 20  # traces kept of those that passed


def as_json(campaign: Campaign) -> dict[str, Any]:
    """The object of `--json`."""
    failures = [
        {
            "trace": failure.trace.origin,
            "operations": failure.trace.operations,
            "at": failure.verdict.at,
            "class": failure.verdict.kind,
            "clause": failure.verdict.clause,
            "expected": failure.verdict.expected,
            "actual": failure.verdict.actual,
            "source": failure.verdict.source,
            "output": failure.verdict.reason,
        }
        for failure in campaign.failures
    ]
    return {
        "target": campaign.target,
        "verdict": campaign.verdict,
        "seed": campaign.seed,
        "traces": len(campaign.judged),
        "operations": campaign.operations,
        "crashes": campaign.crashes,
        "workloads": campaign.workloads,
        "states": campaign.states,
        "seconds": round(campaign.seconds, 3),
        "skipped": campaign.skipped,
        "failures": failures,
        "faults": list(campaign.faults),
        "excused": dict(campaign.excused),
        "reason": campaign.reason,
        "coverage": [[op, outcome, times] for op, outcome, times in coverage(campaign)],
        "pairs": {
            "happened": len(campaign.happened.pairs),
            "never": [list(pair) for pair in never_in_a_row(campaign)],
        },
        "inside": {
            "events": dict(sorted(campaign.happened.inside.items())),
            "pairs": len(campaign.happened.inside_pairs),
        },
        "counters": dict(sorted(campaign.counters.items())),
        "overlap": campaign.overlap and campaign.overlap._asdict(),
    }


def coverage(campaign: Campaign) -> list[tuple[str, str, int]]:
    """Operation, outcome and how often; outcomes that were to be expected and never came are rows too."""
    rows = [(op, outcome, times) for (op, outcome), times in campaign.coverage.items()]
    place = {op: number for number, op in enumerate(OUTCOMES)}
    return sorted(rows, key=lambda row: (place.get(row[0], len(place)), row[1] != "ok", row[1]))


def never_in_a_row(campaign: Campaign) -> list[tuple[Outcome, Outcome]]:
    """Outcomes that both happened, and never one right after the other."""
    return missing_pairs(
        campaign.happened.pairs, (one for one, times in campaign.coverage.items() if times)
    )


def in_a_row(campaign: Campaign) -> str:
    """How much of what may follow what was seen."""
    happened, never = len(campaign.happened.pairs), len(never_in_a_row(campaign))
    text = f"{happened:,} of {happened + never:,} pairs of outcomes happened in a row"
    inside = campaign.happened.inside
    return text + (
        f"; inside, {len(inside)} events in {len(campaign.happened.inside_pairs):,} pairs"
        if inside
        else ""
    )


def as_junit(campaign: Campaign) -> str:
    """JUnit XML: one test case a trace."""
    suite = junitparser.TestSuite(f"conformance {campaign.target}")
    failed = {failure.number: failure for failure in campaign.failures}
    for number, (_, verdict) in enumerate(campaign.judged):
        case = junitparser.TestCase(f"trace {number}", "conformance")
        if number in failed:
            found = failed[number]
            outcome = junitparser.Failure(
                _printable(f"{found.verdict.kind}: {found.verdict.clause}"), "contract"
            )
            outcome.text = _printable("\n".join(found.verdict.words(found.trace)))
            case.result = [outcome]
        elif verdict.verdict != "pass":
            case.result = [junitparser.Skipped(_printable(f"inconclusive: {verdict.reason}"))]
        suite.add_testcase(case)
    if campaign.overlap:
        case = junitparser.TestCase("overlap", "conformance")
        kinds = {"fail": junitparser.Failure, "inconclusive": junitparser.Skipped}
        case.result = [
            kinds[verdict](_printable(campaign.overlap.words))
            for verdict in kinds
            if verdict == campaign.overlap.verdict
        ]
        suite.add_testcase(case)
    if campaign.reason:
        case = junitparser.TestCase("campaign", "conformance")
        case.result = [junitparser.Error(_printable(campaign.reason))]
        suite.add_testcase(case)
    suite.time = campaign.seconds
    document = junitparser.JUnitXml()
    document.add_testsuite(suite)
    return document.tostring().decode()


def _printable(text: str) -> str:
    """The text without the control characters that XML does not have."""
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)


def grouped(failures: Sequence[Failure]) -> list[list[Failure]]:
    """The failures, those together that are one found again; the first of each is the first found."""
    groups: dict[tuple, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(shape(failure.trace, failure.verdict), []).append(failure)
    return list(groups.values())


def unclear(campaign: Campaign) -> list[tuple[int, str]]:
    """The traces without a verdict, by number, and why."""
    return [
        (n, verdict.reason)
        for n, (_, verdict) in enumerate(campaign.judged)
        if verdict.verdict == "inconclusive"
    ]


def save(campaign: Campaign, folder: Path, ops: int) -> None:
    """Write the traces (the failing ones and a sample), report.md and report.html into the folder.

    Sets the `origin` of the traces. `ops` is what the campaign was run with."""
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    for number, (trace, verdict) in enumerate(campaign.judged):
        if number < SAMPLE or verdict.verdict != "pass":
            _save(trace, folder / "traces" / f"{number:05}.jsonl")
    for failure in campaign.failures:
        _save(failure.trace, folder / "traces" / f"failure-{failure.number:05}.jsonl")
    (folder / "report.md").write_text(as_markdown(campaign), encoding="utf-8")
    from conformance.reports.html import (
        page,  # it needs a template engine, which no other output does
    )

    (folder / "report.html").write_text(page(campaign, ops), encoding="utf-8")


def _save(trace: Trace, path: Path) -> None:
    traces.write(trace, path)
    trace.origin = str(path)


def replay_line(campaign: Campaign, failure: Failure, ops: int) -> str:
    """The command that shows the failure again."""
    target = shlex.quote(campaign.target)
    if failure.trace.origin:
        return f"conformance replay {shlex.quote(failure.trace.origin)} --target {target}"
    without = (
        f" --without {','.join(campaign.without)}" if campaign.without else ""
    ) + campaign.how
    if campaign.workloads:
        return f"conformance run --target {target}{without}"
    return (
        f"conformance run --target {target}{without} --seed {campaign.seed} --ops {ops} "
        f"--traces {failure.number + 1}"
    )


def as_markdown(campaign: Campaign) -> str:
    """report.md: the summary, every failure with its shortest trace, and the coverage."""
    text = [f"# {campaign.target}: {campaign.verdict}", "", figures(campaign), ""]
    text += [campaign.reason, ""] if campaign.reason else []
    text += ["```", campaign.output.rstrip(), "```", ""] if campaign.output else []
    for failure, *again in grouped(campaign.failures):
        others = "".join(f", {other.number}" for other in again)
        text += [
            f"## {failure.verdict.kind} (trace {failure.number}{others})",
            "",
            "```",
            *failure.verdict.words(failure.trace),
            "",
            *traces.numbered(failure.trace.events),
            "```",
            "",
        ]
        text += [
            f"From {failure.before} operations to {failure.trace.operations}: {failure.trace.origin}",
            "",
        ]
    text += [
        f"- trace {number}: inconclusive: {reason}" for number, reason in unclear(campaign)
    ] + [""]
    text += ["## What happened", "", "| operation | outcome | times |", "|--|--|--:|"]
    text += [
        f"| {op} | {outcome} | {times or 'never'} |" for op, outcome, times in coverage(campaign)
    ]
    text += ["", in_a_row(campaign) + ".", ""]
    never: dict[str, list[str]] = {}
    for first, second in never_in_a_row(campaign):
        never.setdefault(" ".join(first), []).append(" ".join(second))
    text += ["| after | never came |", "|--|--|"] if never else []
    text += [f"| {first} | {', '.join(seconds)} |" for first, seconds in never.items()]
    if campaign.happened.inside:
        text += ["", "| event inside | times |", "|--|--:|"]
        text += [
            f"| {name} | {times:,} |" for name, times in sorted(campaign.happened.inside.items())
        ]
    if campaign.counters:
        text += ["", "## The target's counters", "", "| counter | sum |", "|--|--:|"]
        text += [f"| {name} | {value:,} |" for name, value in sorted(campaign.counters.items())]
    return "\n".join(text) + "\n"


def figures(campaign: Campaign) -> str:
    explored = (
        f"{campaign.workloads:,} workloads, {campaign.states:,} crash states"
        if campaign.workloads
        else ""
    )
    before = f"{campaign.resumed:,} of the workloads had passed before" if campaign.resumed else ""
    figures = [
        *filter(None, (explored, before)),
        f"{len(campaign.judged)} traces",
        f"{campaign.operations} operations",
        f"{campaign.crashes} crashes",
        f"{campaign.seconds:.1f} s",
        f"seed {campaign.seed}",
    ]
    if campaign.interrupted:
        figures.insert(0, "interrupted")
    if campaign.judges:
        without = "" if "certified" in campaign.judges else " (certified: not built, not run)"
        figures.append("each judged by " + ", ".join(campaign.judges) + without)
    if campaign.faults:
        figures.append(f"with {', '.join(campaign.faults)}: {excused(campaign)}")
    if campaign.overlap:
        figures.append(campaign.overlap.words)
    if campaign.skipped:
        figures.append("skipped: " + ", ".join(campaign.skipped))
    return ", ".join(figures)


def excused(campaign: Campaign) -> str:
    """What the faults of the media excused."""
    kinds = ", ".join(f"{kind} {times}" for kind, times in campaign.excused.most_common() if times)
    return (
        f"{sum(campaign.excused.values())} failures that an honest engine may show ({kinds})"
        if kinds
        else "nothing excused"
    )


def show(campaign: Campaign, console: Console, ops: int, folder: Path | None) -> None:
    """The summary on the terminal."""
    colour = COLOURS[campaign.verdict]
    console.print(
        f"[bold {colour}]{campaign.verdict}[/]  [bold]{escape(campaign.target)}[/]  "
        f"{escape(figures(campaign))}"
    )
    if campaign.reason:
        console.print(f"  {escape(campaign.reason)}")
    if campaign.output:
        console.print("  it printed:\n" + escape(_indented(campaign.output)))
    for failure, *again in grouped(campaign.failures):
        _show_failure(campaign, failure, console, ops)
        if again:
            console.print(
                f"  again     in trace {', '.join(str(other.number) for other in again)}\n"
            )
    for number, reason in unclear(campaign)[:3]:
        console.print(f"[yellow]inconclusive[/]  trace {number}: {escape(reason)}")
    if campaign.judged:
        console.print(_coverage_table(campaign))
        console.print(f"[dim]in a row[/]  {in_a_row(campaign)}", highlight=False)
    if campaign.counters:
        console.print(_counters_table(campaign))
    if folder is not None:
        console.print(
            f"[dim]report[/]    {escape(str(folder / 'report.html'))}, report.md, "
            f"traces in {escape(str(folder / 'traces'))}"
        )


def _show_failure(campaign: Campaign, failure: Failure, console: Console, ops: int) -> None:
    length = failure.trace.operations
    shortened = (
        f"shortened from {failure.before} to {length} operations"
        if length < failure.before
        else f"{length} operations"
    )
    console.print(f"\n[bold red]fail[/]  trace {failure.number}, {shortened}")
    last = failure.verdict.at if failure.verdict.at is not None else len(failure.trace.events)
    for number, text in enumerate(traces.numbered(failure.trace.events[: last + 1])):
        mark = "[red]>[/]" if number == failure.verdict.at else " "
        console.print(f"  {mark} {escape(text)}", highlight=False)
    for text in failure.verdict.words(failure.trace):
        console.print("  " + escape(text), highlight=False, soft_wrap=True)
    console.print(
        f"  replay    {escape(replay_line(campaign, failure, ops))}\n",
        highlight=False,
        soft_wrap=True,
    )


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines()[-20:])


def _coverage_table(campaign: Campaign) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("operation")
    table.add_column("outcomes")
    rows: dict[str, list[str]] = {}
    for op, outcome, times in coverage(campaign):
        rows.setdefault(op, []).append(
            f"{outcome} {times}" if times else f"[yellow]{outcome} never[/]"
        )
    for op, outcomes in rows.items():
        table.add_row(op, ", ".join(outcomes))
    return table


def _counters_table(campaign: Campaign) -> Table:
    """The counters by group: what is before the last dot."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("counters", no_wrap=True)
    table.add_column("sums over all traces")
    groups: dict[str, list[str]] = {}
    for name, value in sorted(campaign.counters.items()):
        group, _, leaf = name.rpartition(".")
        shown = f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
        groups.setdefault(group or "-", []).append(f"{leaf} {shown}")
    for group, leaves in groups.items():
        table.add_row(escape(group), escape(", ".join(leaves)))
    return table


def words(judged: Sequence[Trace]) -> str:
    """How much was judged, such as `3 traces, 92 operations`."""
    operations = sum(trace.operations for trace in judged)
    return f"{len(judged)} trace{'s' * (len(judged) != 1)}, {operations} operations"
