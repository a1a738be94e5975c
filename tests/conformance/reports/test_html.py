"""The HTML report: what is on the page, that it needs nothing else, and that a browser draws it."""

import re
from pathlib import Path

import pytest

from conformance.campaign.results import Campaign, Failure
from conformance.contract.trace import Event, Trace
from conformance.judging import explain
from conformance.judging.explain import CLAUSES, KINDS, Verdict
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.reports import html, picture, summary

MODEL = {"model": named("model")}
OK = {"ok": True}
HELLO = {
    "name": "<script>alert(1)</script>",
    "block_size": 512,
    "crash_profile": "block",
    "capabilities": [],
}
BLEED: list[Event] = [
    {"op": "create", "blocks": 40, "result": OK},
    {"op": "write", "lba": 20, "tags": [1, 2], "result": OK},
    {"op": "snapshot", "name": "s", "result": OK},
    {"op": "write", "lba": 20, "tags": [3], "result": None},
    {"op": "crash", "result": OK},
    {"op": "read", "lba": 20, "count": 2, "view": "s", "result": {"ok": True, "tags": [3, 2]}},
]


def failed(events: list[Event]) -> tuple[Trace, Verdict]:
    trace = Trace(HELLO, events)
    return trace, judge([trace], MODEL)[0]


# The revert took effect before the write that was sent before it, as the read tells.
OVERLAPPED: list[Event] = [
    {"op": "create", "blocks": 1, "result": OK, "called": 0, "answered": 1},
    {"op": "snapshot", "name": "s", "result": OK, "called": 2, "answered": 3},
    {"op": "write", "lba": 0, "tags": [1], "result": OK, "called": 4, "answered": 7},
    {"op": "revert", "name": "s", "result": OK, "called": 5, "answered": 6},
    {"op": "read", "lba": 0, "count": 1, "result": {**OK, "tags": [1]}, "called": 8, "answered": 9},
    {
        "op": "write",
        "lba": 0,
        "tags": [2],
        "failure": {"kind": "protocol", "message": "invalid answer"},
        "result": None,
        "called": 10,
        "answered": None,
    },
]


def test_the_picture_shows_what_was_allowed_and_what_came() -> None:
    trace, verdict = failed(BLEED)
    drawn = picture.picture(trace, verdict)
    assert [band.view for band in drawn.bands] == ["live", "s"] and list(drawn.bands[0].rows) == [
        20,
        21,
    ]
    assert [(ring.kind, ring.label) for ring in drawn.rings] == [
        ("flight", "3"),
        ("wrong", "3"),
        ("read", "2"),
    ]
    after_crash = [cell.label for cell in drawn.cells if cell.x == 4 * picture.WIDTH]
    assert after_crash == ["1|3", "2", "1", "2"]
    assert drawn.columns[3].answer == "power cut" and drawn.columns[5].mark == "failed"
    assert (
        drawn.arrow is not None
        and drawn.arrow[0] < drawn.arrow[2]
        and drawn.left_out == "38 blocks"
    )


def test_the_picture_of_requests_that_took_effect_in_another_order_ends_there() -> None:
    trace = Trace({**HELLO, "protocol": 2, "in_flight": 2}, OVERLAPPED)
    verdict = Verdict("fail", 5, "protocol", CLAUSES["dialogue"], "an answer", "invalid answer")
    drawn = picture.picture(trace, verdict)
    assert {cell.x // picture.WIDTH for cell in drawn.cells} == {0, 1, 2, 3}
    assert [(ring.kind, ring.label) for ring in drawn.rings] == [("read", "1"), ("flight", "2")]
    assert drawn.left_out == "what blocks may hold from operation 4 on, as requests overlap"


def test_a_long_trace_on_a_large_disk_is_cut_to_what_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[Event] = [
        BLEED[0],
        *({"op": "write", "lba": n % 40, "tags": [n + 1], "result": OK} for n in range(200)),
        {"op": "read", "lba": 39, "count": 1, "result": {"ok": True, "tags": [1]}},
    ]
    drawn = picture.picture(*failed(events))
    assert len(drawn.columns) == 202 and len(drawn.bands[0].rows) == picture.MOST_ROWS
    assert 39 in drawn.bands[0].rows and drawn.left_out == "28 blocks"
    most = 12 * 50
    monkeypatch.setattr(picture, "MOST_CELLS", most)
    drawn = picture.picture(*failed(events))
    assert len(drawn.cells) == most and len(drawn.columns) == 50
    assert drawn.columns[-1].mark == "failed"
    assert drawn.left_out == "28 blocks and the first 152 operations"


@pytest.mark.parametrize(
    "events",
    [
        [{**BLEED[0], "result": None, "failure": {"kind": "exit", "message": "gone"}}],
        [
            BLEED[0],
            {
                **BLEED[1],
                "result": None,
                "failure": {"kind": "hang", "message": "late", "output": "</pre><b>"},
            },
        ],
        [*BLEED[:4], {"op": "crash", "result": {"ok": False, "error": "data-lost"}}],
        [*BLEED[:3], {"op": "snapshot", "name": "s", "result": OK}],
        [
            *BLEED[:2],
            {
                "op": "read",
                "lba": 20,
                "count": 1,
                "result": {
                    "ok": True,
                    "tags": [-1],
                    "found": [
                        {"lba": 20, "kind": "torn", "detail": "sectors 0-3 tag 1, 4-7 zeroes"}
                    ],
                },
            },
        ],
    ],
)
def test_every_kind_of_failure_can_be_drawn(
    events: list[Event],
) -> None:
    trace, verdict = failed(events)
    result = Campaign(
        "t", 1, judged={0: (trace, verdict)}, failures=[Failure(trace, verdict, 0, 9)]
    )
    text = html.page(result)
    assert verdict.kind in text and "<svg" in text and "<b>" not in text


def test_the_page_needs_nothing_else_and_trusts_nothing() -> None:
    trace, verdict = failed(BLEED)
    result = Campaign(
        "exec:<img src=x>",
        7,
        judged={0: (trace, verdict)},
        failures=[Failure(trace, verdict, 3, 50)],
    )
    result.coverage.update({("write", "ok"): 2, ("unmap", "ok"): 0})
    text = html.page(result)
    assert text.count("<script") == 1 and "alert" not in text.partition("<script")[2]
    assert "<img" not in text
    assert not re.search(r"<[^>]*(src|href)\s*=|url\((?!#)|@import", text)
    assert "never happened" in text and CLAUSES["snapshot"] in text and "snapshot-bleed" in text
    assert "conformance run --target" in text


def test_the_same_failure_is_shown_once() -> None:
    trace, verdict = failed(BLEED)
    many = [Failure(trace, verdict, number, 50) for number in (3, 8, 9)]
    text = html.page(Campaign("t", 7, judged={0: (trace, verdict)}, failures=many))
    assert text.count('class="failure"') == 1 and "trace 3, again in traces 8, 9" in text


def test_a_command_in_the_summary_is_set_as_one() -> None:
    text = html.page(Campaign("t", 7, judges=("model",)))
    assert "which <code>make proofs</code> builds" in text and "`" not in text


def test_the_legend_has_four_items_and_explains_the_notation() -> None:
    trace, verdict = failed(BLEED)
    text = html.page(
        Campaign("t", 7, judged={0: (trace, verdict)}, failures=[Failure(trace, verdict, 3, 50)])
    )
    legend = text.partition('<div class="legend">')[2].partition("</div>")[0]
    assert legend.count("<span>") == legend.count("<svg") == 4
    assert "read 2 blocks, from logical block address (LBA) 20 on" in " ".join(text.split())


def test_what_cannot_happen_is_not_called_never() -> None:
    trace, verdict = failed(BLEED)
    result = Campaign("t", 7, judged={0: (trace, verdict)})
    result.coverage.update({("write", "ok"): 5, ("write", "cut"): 0, ("unmap", "ok"): 0})
    text = html.page(result)
    rows = text.partition("<table>")[2].partition("</table>")[0]
    assert rows.count("never happened") == 1 and "cut" not in rows
    assert "Cannot happen to this target: write cut" in text
    result.coverage["flush", "cut"] = 1
    assert html.page(result).count("never happened") == 2, "its power can be cut after all"
    result.coverage.update({("flush", "cut"): summary.MANY - 2, ("crash", "ok"): 9})
    result.coverage["crash", "cut"] = result.coverage["clean", "cut"] = 0
    assert html.page(result).count("never happened") == 4, "few cuts tell nothing"
    result.coverage["flush", "cut"] += 1
    assert html.page(result).count("never happened") == 2
    assert "crash cut, clean cut (the kit cuts the power of this target only" in html.page(result)
    result.coverage["clean", "cut"] = 1
    assert html.page(result).count("never happened") == 3, "what is alone can be cut, too"


def test_every_class_has_a_meaning() -> None:
    source = Path(explain.__file__).read_text()
    named_there = set(
        re.findall(r'kind(?:, clause)?(?:, source)? = "([a-z-]+)"|return "([a-z-]+)", "', source)
    )
    assert {one or two for one, two in named_there} <= set(KINDS)
