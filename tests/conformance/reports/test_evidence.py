"""A failure keeps its evidence: operations, options, commands. Text of a target is printable."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance.campaign.grouping import grouped
from conformance.campaign.results import Campaign, Failure
from conformance.contract.printable import one_word, printable
from conformance.contract.trace import Event, Trace, line
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.judging.verdict import Verdict
from conformance.programs.swarm import CAPABILITIES, IN_FLIGHT
from conformance.reports import display, evidence, folder, machine, terminal, worth

ROOT = Path(__file__).parents[3]
OK = {"ok": True}
HELLO = {"name": "t", "block_size": 512, "crash_profile": "ack", "capabilities": ["snapshot"]}
CREATE: Event = {"op": "create", "blocks": 4, "result": OK}
WRITE: Event = {"op": "write", "lba": 0, "tags": [1], "result": OK}
STALE: Event = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [0]}}


def failure(*events: Event, number: int | None = 7, **more: object) -> Failure:
    trace = Trace(HELLO, [CREATE, *events], seed=9, options={"spares": 1, "layout": "mirror"})
    verdict = judge([trace], {"model": named("model")})[0]
    assert verdict.verdict == "fail", verdict
    return Failure(trace, verdict, number, 50, **more)  # type: ignore[arg-type]


def failed(*failures: Failure) -> Campaign:
    return Campaign("exec:my disk", 3, 40, failures=list(failures))


def shown(campaign: Campaign) -> str:
    out = io.StringIO()
    terminal.show(campaign, Console(file=out, width=200), None)
    return out.getvalue()


def test_json_carries_what_replays_the_failure() -> None:
    one = failure(WRITE, STALE)
    found = json.loads(json.dumps(machine.as_json(failed(one))))["failures"][0]
    assert found["events"] == [CREATE, WRITE, STALE]
    assert found["options"] == {"spares": 1, "layout": "mirror"}
    assert found["replay"] == (
        "conformance run --target 'exec:my disk' --seed 3 --ops 40 --traces 8"
    )
    one.trace.origin = "out/f.jsonl"
    found = machine.as_json(failed(one))["failures"][0]
    assert found["replay"] == "conformance replay out/f.jsonl --target 'exec:my disk'"
    assert "--seed 3" in found["run"]


@pytest.mark.parametrize("output", [machine.as_junit, shown])
def test_people_see_the_same(output: object) -> None:
    one = failure(WRITE, STALE, number=0, failed=3, repeats=10, unfinished=True)
    one.trace.origin = "out/f.jsonl"
    campaign = failed(one)
    campaign.judged = {0: (one.trace, one.verdict)}
    text = output(campaign)  # type: ignore[operator]
    for part in (
        "1  write 0: 1 -> ok",
        "> ",
        "layout=mirror, spares=1",
        "conformance replay out/f.jsonl",
        "conformance shrink out/f.jsonl",
        "it failed 3 of 10 times",
        "--seed 3 --ops 40 --traces 1",
    ):
        assert part in text.replace("&gt;", ">"), part


def test_a_long_listing_ends_with_what_matters() -> None:
    writes = [{**WRITE, "lba": 1, "tags": [number]} for number in range(2, 90)]
    one = failure(*writes[:40], WRITE, *writes[40:], STALE)
    text = shown(failed(one))
    for part in (
        "    0  create 4",
        "   ...  40 operations",
        "   41  write 0: 1 -> ok",  # the verdict names it
        "   ...  19 operations",
        "   61  write 1: ",
        ">   90  read 0+1 -> 0",
    ):
        assert part in text, part
    assert "\n     60  write" not in text and text.count(" write 1: ") == 29
    campaign = failed(one)
    campaign.judged = dict.fromkeys(range(8), (one.trace, one.verdict))  # it is trace 7
    for whole in (machine.as_junit(campaign), folder.as_markdown(campaign)):
        assert whole.count(" write 1: ") == 88 and "..." not in whole


def test_a_long_listing_of_requests_that_overlap() -> None:
    times = [{"called": 2 * number, "answered": 2 * number + 1} for number in range(82)]
    events = [CREATE, *[WRITE] * 80, STALE, WRITE, WRITE]
    times[81:] = [{"called": called, "answered": called + 2} for called in (162, 163, 166)]
    timed = [{**event, **time} for event, time in zip(events, times, strict=True)]
    whole, verdict = Trace({**HELLO, "protocol": 2}, timed), Verdict("fail", 81, "no-order")
    lines = evidence.listing(Failure(whole, verdict, 7, 50), last=10)
    assert len(lines) == 13 and "create" in lines[0] and "71 operations" in lines[1]
    assert lines[2].endswith("72  write 0: 1 -> ok") and lines[-2].startswith(">")
    assert len(evidence.listing(Failure(whole, verdict, 7, 50))) == 84


def test_shrinking_that_is_done_names_no_command() -> None:
    one = failure(WRITE, STALE)
    one.trace.origin = "f.jsonl"
    assert evidence.shrink_line(failed(one), one) == ""
    assert "conformance shrink" not in shown(failed(one))


def test_one_bug_is_one_failure() -> None:
    flush: Event = {"op": "flush", "result": OK}
    snapshot: Event = {"op": "snapshot", "name": "s", "result": OK}
    first, short = failure(WRITE, WRITE, STALE, number=3), failure(WRITE, STALE, number=8)
    long = failure(*[WRITE, flush] * 20, snapshot, STALE, number=9, unfinished=True)
    other = failure(WRITE, snapshot, STALE, number=11)
    groups = grouped([first, short, long, other])
    assert [[one.number for one in group] for group in groups] == [[8, 3, 9], [11]]
    campaign = failed(first, short, long, other)
    assert [one["traces"] for one in machine.as_json(campaign)["failures"]] == [[8, 3, 9], [11]]
    assert shown(campaign).count("expected ") == 2
    assert "trace 3, again in traces 8, 9" in shown(campaign)


@pytest.mark.parametrize(
    "numbers, words",
    [
        ((3, 8), "trace 3, again in trace 8"),
        ((None, 0, 1), "a failure kept from an earlier run, again in traces 0, 1"),
        ((None, 2, None), "2 failures kept from earlier runs, again in trace 2"),
        ((None, None), "2 failures kept from earlier runs"),
    ],
)
def test_where_a_bug_was_found(numbers: tuple[int | None, ...], words: str) -> None:
    assert evidence.found_in([failure(WRITE, STALE, number=one) for one in numbers]) == words


def test_junit_has_one_failure_per_bug() -> None:
    campaign = failed(failure(WRITE, STALE, number=0), failure(WRITE, STALE, number=1))
    campaign.judged = {n: (one.trace, one.verdict) for n, one in enumerate(campaign.failures)}
    text = machine.as_junit(campaign)
    assert text.count("<failure") == 1 and "the same bug as trace 0" in text


def test_piped_output_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign("t", 1, reason="why " * 100)
    campaign.counters["a.b"] = 5
    terminal.show(campaign, terminal.console(), None)
    text = capsys.readouterr().out
    assert "why " * 99 in text and "counters  1 of the target: --json, --report" in text


def test_control_characters_are_escaped() -> None:
    name = "a\nb\x1b[31m"
    event: Event = {"op": "snapshot", "name": name, "result": {"ok": True}}
    assert line(event) == r'snapshot "a\nb\x1b[31m" -> ok'
    assert line({"op": "snapshot", "name": ""}) == 'snapshot ""'
    assert len(line({"op": "snapshot", "name": "x" * 5000})) < 120
    one = failure(event)
    for text in (machine.as_junit(failed(one)), shown(failed(one))):
        assert "\x1b" not in text and "a\nb" not in text
    noisy = Campaign("t", 1, reason="it is\x1b[2J unusable", output="one\x07\ntwo")
    assert "\x1b" not in shown(noisy) and "\x07" not in shown(noisy)


def test_printable() -> None:
    assert printable("a\tb\nc\r") == "a\tb\nc\\r" and printable("a\nb", "") == "a\\nb"
    assert one_word(7) == "7" and one_word("s 1") == '"s 1"' and one_word("s.1-_") == "s.1-_"


def assert_no_chance_is_given_of_less_than_the_self_test(campaign: Campaign) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"ops": 29}, "had traces of 30 operations and more"),
        ({"usual": False}, "had power cuts and up to 8 requests in flight"),
        ({"target": "refmodel:layout=mirror"}, "of all engines with all options"),
        ({"faults": ("bit-flip",)}, "injected no faults"),
    )
    for less, says in cases:
        lines = dict(worth.worth(replace(campaign, **less)))
        assert says in lines["worth"] and "%" not in lines["worth"] and "more" not in lines


def passed() -> Campaign:
    trace = Trace(HELLO, [CREATE, WRITE])
    verdict = judge([trace], {"model": named("model")})[0]
    campaign = Campaign("t", 1, judged=dict.fromkeys(range(200), (trace, verdict)), seconds=10.0)
    campaign.declared = frozenset([*CAPABILITIES, IN_FLIGHT])
    campaign.coverage.update({("write", "ok"): 5, ("read", "ok"): 0})
    return campaign


def test_a_pass_says_what_it_is_worth() -> None:
    campaign, whole = passed(), worth.planted()
    lines = dict(worth.worth(campaign))
    assert lines["reached"].startswith("1 of 2 outcomes") and lines["never"] == "read ok"
    assert f"{worth.chance(whole, 200):.0%}" in lines["worth"]
    assert "in our engines" in lines["worth"] and "without" not in lines["worth"]
    unknown = dict(
        worth.worth(replace(campaign, skipped=["snapshots"]))
    )  # no capability of the kit
    assert unknown == lines
    assert "others" not in dict(worth.worth(replace(campaign, target="refmodel")))
    table = (ROOT / "docs/self-test.md").read_text().partition("### Independent engines")[2]
    rows = re.findall(r"^\|.*\| (\d+) \| (\d+) \|.*\|.*\|$", table.partition("\n###")[0], re.M)
    bugs, found = (sum(int(row[column]) for row in rows) for column in (0, 1))
    assert f" {found:,} of {bugs:,} planted bugs " in lines["others"]
    assert [worth.percent(chance) for chance in (0.5, 0.994, 0.9999)] == ["50%", "99%", "over 99%"]
    assert "--minutes 10 runs about 12,000 traces" in lines["more"]
    assert 0 < worth.chance(whole, 10) < worth.chance(whole, 200) < worth.chance(whole, 10_000) <= 1
    assert_no_chance_is_given_of_less_than_the_self_test(campaign)
    assert "worth " in shown(campaign) and machine.as_json(campaign)["worth"] == lines
    assert worth.worth(failed(failure(WRITE, STALE))) == []


def test_a_target_that_offers_less_is_compared_with_bugs_that_show_there() -> None:
    whole = worth.planted()
    for less in ({"skipped": ["device", "fua"]}, {"without": ("fua",), "skipped": ["device"]}):
        lines = dict(worth.worth(replace(passed(), **less)))
        some = [bug for bug in whole if not bug.needs & {"device", "fua"}]
        assert 0 < len(some) < len(whole)
        assert (
            f"(one of {len(some)} in our engines that show without device, fua; " in lines["worth"]
        )
        assert f"{worth.percent(worth.chance(some, 200))}" in lines["worth"]
        assert "a chance of" in lines["more"]
    alone = dict(worth.worth(replace(passed(), declared=frozenset(CAPABILITIES))))
    assert "that show without in_flight" in alone["worth"]
    bare = dict(worth.worth(replace(passed(), without=tuple(CAPABILITIES))))
    assert all(name in bare["worth"] for name in CAPABILITIES)


def test_progress_says_that_a_failure_is_being_shrunk() -> None:
    campaign = failed(failure(WRITE, STALE))
    assert display.words(campaign).endswith("1 findings")
    campaign.shrinking = True
    assert display.words(campaign).endswith("shrinking failure 1")
