"""The report as one page of HTML that needs nothing else: report.html.j2, with a picture of every failure."""

from typing import Any

import jinja2

from conformance.campaign.results import Campaign, Failure
from conformance.contract import trace as traces
from conformance.judging.explain import KINDS
from conformance.reports import picture, report

TEMPLATE = "report.html.j2"


def page(campaign: Campaign, ops: int) -> str:
    """The page. `ops` is what the campaign was run with, for the line that replays a failure."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("conformance.reports", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = report.coverage(campaign)
    return environment.get_template(TEMPLATE).render(
        campaign=campaign,
        figures=report.figures(campaign),
        declared=_declared(campaign),
        coverage=rows,
        most=max((times for _, _, times in rows), default=1) or 1,
        failures=_failures(campaign, ops),
        unclear=report.unclear(campaign),
        width=picture.WIDTH,
        height=picture.HEIGHT,
    )


def _declared(campaign: Campaign) -> str:
    if not campaign.judged:
        return ""
    hello = campaign.judged[0][0].hello
    profile = hello["crash_profile"]
    return (
        f"{hello.get('name', '')} {hello.get('version', '')}, blocks of {hello['block_size']} bytes, "
        + (f"crash profile {profile}" if profile else "nothing promised about crashes")
    )


def _failures(campaign: Campaign, ops: int) -> list[dict[str, Any]]:
    """Each failure once, however often it was found."""
    return [_failure(campaign, found[0], found, ops) for found in report.grouped(campaign.failures)]


def _failure(campaign: Campaign, shown: Failure, found: list[Failure], ops: int) -> dict[str, Any]:
    verdict, trace = shown.verdict, shown.trace
    meaning = KINDS[verdict.kind]
    return {
        "kind": verdict.kind,
        "meaning": meaning[0].upper() + meaning[1:],
        "verdict": verdict,
        "traces": [one.number for one in found],
        "before": shown.before,
        "operations": trace.operations,
        "at": f"{verdict.at}: {traces.line(trace.events[verdict.at])}"
        if verdict.at is not None
        else "",
        "replay": report.replay_line(campaign, shown, ops),
        "listing": "\n".join(traces.numbered(trace.events)),
        "picture": picture.picture(trace, verdict),
    }
