"""report.html: one self-contained page with a picture of every failure."""

from typing import Any

import jinja2

from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract import trace as traces
from conformance.judging.explain import KINDS
from conformance.reports import evidence, picture, summary
from conformance.reports.worth import worth

TEMPLATE = "report.html.j2"


def page(campaign: Campaign) -> str:
    """Return the page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("conformance.reports", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = summary.coverage(campaign)
    return environment.get_template(TEMPLATE).render(
        campaign=campaign,
        figures=summary.figures(campaign),
        declared=_declared(campaign),
        worth=worth(campaign),
        coverage=rows,
        cannot_happen=summary.cannot_happen(campaign),
        most=max((times for _, _, times in rows), default=1) or 1,
        failures=[_failure(campaign, group) for group in grouped(campaign.failures)],
        unclear=summary.unclear(campaign),
        width=picture.WIDTH,
        height=picture.HEIGHT,
        left=picture.LEFT,
    )


def _declared(campaign: Campaign) -> str:
    first = next((trace for trace, _ in campaign.judged.values()), None)
    if first is None or isinstance(first, traces.Passed):
        return ""
    hello = first.hello
    profile = hello["crash_profile"]
    promise = f"crash profile {profile}" if profile else "nothing promised about crashes"
    name = f"{hello.get('name', '')} {hello.get('version', '')}"
    return f"{name}, blocks of {hello['block_size']} bytes, {promise}"


def _failure(campaign: Campaign, group: list[Failure]) -> dict[str, Any]:
    """Return what the page shows of one bug."""
    shown = group[0]
    verdict, trace = shown.verdict, shown.trace
    meaning = KINDS[verdict.kind]
    return {
        "kind": verdict.kind,
        "meaning": meaning[0].upper() + meaning[1:],
        "verdict": verdict,
        "found": evidence.found_in(group),
        "shortened": evidence.shortened(shown),
        "at": ""
        if verdict.at is None
        else f"{verdict.at}: {traces.line(trace.events[verdict.at], verdict.lba)}",
        "options": evidence.options(shown),
        "how_often": evidence.how_often(shown),
        "replay": evidence.replay_line(campaign, shown),
        "run": evidence.run_line(campaign, shown),
        "shrink": evidence.shrink_line(campaign, shown),
        "listing": "\n".join(evidence.listing(shown)),
        "picture": picture.picture(trace, verdict),
    }
