"""`--report DIR`: traces, report.md and report.html in a folder."""

import re
from pathlib import Path

from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign
from conformance.contract import trace as traces
from conformance.contract.trace import Passed
from conformance.reports import evidence
from conformance.reports.summary import (
    cannot_happen,
    coverage,
    figures,
    in_a_row,
    never_in_a_row,
    unclear,
)
from conformance.reports.worth import worth
from refmodel.core.whole_file import write_whole

SAMPLE = 20  # traces that are kept though they passed
OWN = re.compile(r"(failure-)?(kept(-\d+)?|\d{5,})\.jsonl")  # names of the traces of a report


def save(campaign: Campaign, folder: Path) -> None:
    """Write the failing traces and a sample of the others, report.md and report.html. The traces of
    an earlier report in the folder are removed.

    Sets the `origin` of the traces. Raises OSError if the folder cannot be written."""
    from conformance.reports.html import page  # only this output needs a template engine

    (folder / "traces").mkdir(parents=True, exist_ok=True)
    for old in (folder / "traces").iterdir():
        if OWN.fullmatch(old.name):
            old.unlink()
    for number, (trace, verdict) in campaign.judged.items():
        if not isinstance(trace, Passed) and (number < SAMPLE or verdict.verdict != "pass"):
            path = folder / "traces" / f"{number:05}.jsonl"
            traces.write(trace, path)
            trace.origin = str(path)
    for place, failure in enumerate(campaign.failures):
        name = f"kept-{place}" if failure.number is None else f"{failure.number:05}"
        path = folder / "traces" / f"failure-{name}.jsonl"
        traces.write(failure.on_file, path)
        failure.trace.origin = str(path)
    write_whole(folder / "report.md", as_markdown(campaign))
    write_whole(folder / "report.html", page(campaign))


def as_markdown(campaign: Campaign) -> str:
    """Return report.md: the summary, every bug with its shortest trace, and the coverage."""
    text = [f"# {campaign.target}: {campaign.verdict}", "", figures(campaign), ""]
    text += [f"- {name}: {line}" for name, line in worth(campaign)] + [""]
    text += [campaign.reason, ""] if campaign.reason else []
    text += ["```", campaign.output.rstrip(), "```", ""] if campaign.output else []
    for group in grouped(campaign.failures):
        text += [
            f"## {group[0].verdict.kind} ({evidence.found_in(group)})",
            "",
            "```",
            *evidence.as_lines(campaign, group, None),
            "```",
            "",
            f"{evidence.shortened(group[0])}: {group[0].trace.origin}",
            "",
        ]
    text += [
        f"- trace {number}: inconclusive: {reason}" for number, reason in unclear(campaign)
    ] + [""]
    return "\n".join([*text, *_coverage(campaign), *_counters(campaign)]) + "\n"


def _coverage(campaign: Campaign) -> list[str]:
    text = ["## What happened", "", "| operation | outcome | times |", "|--|--|--:|"]
    text += [
        f"| {op} | {outcome} | {times or 'never'} |" for op, outcome, times in coverage(campaign)
    ]
    text += [""]
    text += [
        f"Not possible here: {', '.join(outcomes)} ({reason})."
        for reason, outcomes in cannot_happen(campaign).items()
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
    return text


def _counters(campaign: Campaign) -> list[str]:
    if not campaign.counters:
        return []
    rows = [f"| {name} | {value:,} |" for name, value in sorted(campaign.counters.items())]
    return ["", "## The target's counters", "", "| counter | sum |", "|--|--:|", *rows]
