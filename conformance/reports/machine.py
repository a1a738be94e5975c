"""Machine-readable results of a campaign: JSON and JUnit XML."""

from typing import Any

import junitparser

from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract.printable import printable
from conformance.reports import evidence
from conformance.reports.summary import coverage, never_in_a_row
from conformance.reports.worth import worth


def as_json(campaign: Campaign) -> dict[str, Any]:
    """Return the object of `--json`. `failures` has one entry per bug."""
    return {
        "target": campaign.target,
        "verdict": campaign.verdict,
        "interrupted": campaign.interrupted,
        "seed": campaign.seed,
        "traces": len(campaign.judged),
        "operations": campaign.operations,
        "crashes": campaign.crashes,
        "workloads": campaign.workloads,
        "states": campaign.states,
        "seconds": round(campaign.seconds, 3),
        "skipped": campaign.skipped,
        "failures": [_failure(campaign, group) for group in grouped(campaign.failures)],
        "faults": list(campaign.faults),
        "excused": dict(campaign.excused),
        "reason": campaign.reason,
        "worth": dict(worth(campaign)),
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


def _failure(campaign: Campaign, group: list[Failure]) -> dict[str, Any]:
    shown = group[0]
    return {
        "trace": shown.trace.origin,
        "traces": [one.number for one in group],
        "operations": shown.trace.operations,
        "before": shown.before,
        "unfinished": shown.unfinished,
        "failed": shown.failed,
        "repeats": shown.repeats,
        "at": shown.verdict.at,
        "class": shown.verdict.kind,
        "clause": shown.verdict.clause,
        "expected": shown.verdict.expected,
        "actual": shown.verdict.actual,
        "source": shown.verdict.source,
        "output": shown.verdict.reason,
        "options": shown.trace.options,
        "events": evidence.operations(shown),
        "replay": evidence.replay_line(campaign, shown),
        "run": evidence.run_line(campaign, shown),
        "shrink": evidence.shrink_line(campaign, shown),
    }


def as_junit(campaign: Campaign) -> str:
    """Return JUnit XML: one test case per trace, and one failure per bug.

    A trace that shows a bug that another trace shows shorter is skipped, and says which."""
    suite = junitparser.TestSuite(f"conformance {campaign.target}")
    groups = {id(one): group for group in grouped(campaign.failures) for one in group}
    failed = {one.number: one for one in campaign.failures}
    for one in campaign.failures:
        if one.number is None:
            suite.add_testcase(_case("kept failure", _failed(campaign, one, groups[id(one)])))
    for number, (_, verdict) in campaign.judged.items():
        result = None
        if number in failed:
            result = _failed(campaign, failed[number], groups[id(failed[number])])
        elif verdict.verdict != "pass":
            result = junitparser.Skipped(_xml(f"inconclusive: {verdict.reason}"))
        suite.add_testcase(_case(f"trace {number}", result))
    if campaign.overlap:
        kinds = {"fail": junitparser.Failure, "inconclusive": junitparser.Skipped}
        kind = kinds.get(campaign.overlap.verdict)
        suite.add_testcase(_case("overlap", kind and kind(_xml(campaign.overlap.words))))
    if campaign.reason or campaign.interrupted:
        reason = campaign.reason or "interrupted"
        suite.add_testcase(_case("campaign", junitparser.Error(_xml(reason))))
    suite.time = campaign.seconds
    document = junitparser.JUnitXml()
    document.add_testsuite(suite)
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]  # it has no annotation
    return text.decode()


def _case(name: str, result: Any) -> Any:
    case = junitparser.TestCase(name, "conformance")
    if result is not None:
        case.result = [result]
    return case


def _failed(campaign: Campaign, failure: Failure, group: list[Failure]) -> Any:
    if failure is not group[0]:
        return junitparser.Skipped(_xml(f"the same bug as {evidence.found_in(group[:1])}"))
    verdict = failure.verdict
    result = junitparser.Failure(_xml(f"{verdict.kind}: {verdict.clause}"), "contract")
    result.text = _xml("\n".join(evidence.as_lines(campaign, group, None)))
    return result


def _xml(text: str) -> str:
    """Return the text without the characters that XML does not have."""
    return printable(text)
