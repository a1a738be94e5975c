"""Faults of the media: an honest engine stands those within its redundancy, and what it may show
beyond is told from what it may not.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.campaign.random_campaign import campaign
from conformance.campaign.results import Campaign
from conformance.cli import main
from conformance.contract.trace import Event, Trace
from conformance.judging import fault_excuses
from conformance.judging.explain import Verdict
from conformance.judging.explain_overlap import drawn
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.targets import resolve
from refmodel.log_structured.maps import node, page_store
from refmodel.media import faults as media

MODEL = {"model": named("model")}


def run(name: str, count: int = 40, target: str = "refmodel", seed: int = 4) -> Campaign:
    names = fault_excuses.parse(name)
    return campaign(
        fault_excuses.on_media(resolve(target), names),
        count=count,
        ops=30,
        seed=seed,
        oracles=MODEL,
        faulty=names,
        most_failures=1,
    )


@pytest.mark.parametrize("name", fault_excuses.FAULTS)
def test_the_reference_engine_stands_a_fault_of_one_device(name: str) -> None:
    result = run(name)
    assert result.verdict == "pass" and not sum(result.excused.values()), [
        f.verdict for f in result.failures
    ]


@pytest.mark.parametrize("name", fault_excuses.FAULTS)
def test_on_every_device_it_bites(name: str) -> None:
    result = run(name + "@all", 60)
    assert sum(result.excused.values()) > 0 and not result.excused["exit"]
    assert result.verdict == "pass", [failure.verdict for failure in result.failures]


def test_where_devices_vanish_one_after_another_data_is_lost_and_nothing_breaks_off() -> None:
    """The witness of a mirror among them, and all of them while the disk is opened."""
    result = run("vanishing-device@all", 60, "refmodel:layout=mirror")
    assert result.verdict == "pass" and result.excused["lost-data"] > 30, [
        failure.verdict for failure in result.failures
    ]


@pytest.mark.parametrize("name", ["lost-write", "lying-flush", "misdirected-write"])
def test_an_engine_that_believes_whatever_is_whole_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a node for the right one if it is whole and says that it is of this page and map."""
    monkeypatch.setattr(
        page_store,
        "is_node",
        lambda page, kind, data, _: node.is_node(page, kind, data, node.checksum_of(data)),
    )
    assert run(name, 400, "refmodel:layout=mirror", seed=5).verdict == "fail"


def test_a_device_that_vanishes_while_the_disk_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MOST_IOS", 12)
    assert run("vanishing-device").verdict == "pass"


def test_what_is_excused() -> None:
    trace = Trace(
        {"tolerates": 1},
        [{"op": "read", "lba": 0, "count": 1, "result": {"ok": False, "error": "data-lost"}}],
    )
    lost = Verdict("fail", 0, "lost-data")
    assert fault_excuses.excuses(("bit-flip@all",), trace, lost) and not fault_excuses.excuses(
        ("bit-flip",), trace, lost
    )
    assert fault_excuses.excuses(("bit-flip",), Trace({"tolerates": 0}, trace.events), lost), (
        "no redundancy to be within"
    )
    assert not fault_excuses.excuses((), trace, lost)
    for kind in ("garbage", "torn", "foreign", "misplaced"):
        wrong = Trace(
            {"tolerates": 1},
            [{"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [9]}}],
        )
        assert not fault_excuses.excuses(("bit-flip@all",), wrong, Verdict("fail", 0, kind))
    assert not fault_excuses.without_lost_reads(
        ("bit-flip@all",), trace
    ) and fault_excuses.without_lost_reads(("bit-flip",), trace)


def test_what_was_acknowledged_since_the_last_recovery_is_not_excused() -> None:
    """What a fault may have made forgotten is what a recovery read; the rest the engine still
    knows.
    """
    create = {"op": "create", "blocks": 4, "result": {"ok": True}}
    write = {"op": "write", "lba": 0, "tags": [1], "result": {"ok": True}}
    read = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [0]}}
    crash, restart = ({"op": op, "result": {"ok": True}} for op in ("crash", "restart"))

    def excused(fault: str, *events: Event) -> bool:
        trace = Trace({"tolerates": 1}, list(events))
        verdict = Verdict("fail", len(events) - 1, "stale")
        return fault_excuses.excuses((fault,), trace, verdict)

    for fault in ("lying-flush@all", "lost-write@all", "bit-flip@all", "misdirected-write@all"):
        assert excused(fault, create, write, crash, read)
        assert not excused(fault, create, write, read)
        assert not excused(fault, create, crash, write, read)
        assert excused(fault, create, write, restart, read), "a restart is a time without power"
    assert not excused("vanishing-device@all", create, write, crash, read)


def test_a_snapshot_of_what_was_gone_is_excused() -> None:
    """It holds what live showed: nothing has to be lost after it was taken."""
    create = {"op": "create", "blocks": 4, "result": {"ok": True}}
    write = {"op": "write", "lba": 0, "tags": [1], "result": {"ok": True}}
    crash = {"op": "crash", "result": {"ok": True}}
    snapshot = {"op": "snapshot", "name": "s", "result": {"ok": True}}
    live = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [1]}}
    right = {**live, "view": "s"}
    wrong = {**right, "result": {"ok": True, "tags": [0]}}

    def excused(*events: Event) -> bool:
        trace = Trace({"tolerates": 1}, list(events))
        verdict = Verdict("fail", len(events) - 1, "stale", lba=0)
        return fault_excuses.excuses(("lying-flush@all",), trace, verdict)

    assert excused(create, write, crash, snapshot, wrong)
    assert excused(create, write, snapshot, crash, wrong)
    assert not excused(create, write, crash, live, snapshot, wrong), "it was still there"
    assert not excused(create, write, crash, snapshot, right, wrong)
    assert not excused(create, crash, write, snapshot, wrong)


def test_an_order_that_is_missing_is_excused_as_other_losses_are() -> None:
    """A request of unknown outcome may take effect later, so the trace needs an order."""
    hello = {"protocol": 2, "tolerates": 1, "crash_profile": "ack", "block_size": 512}
    written, unknown = (
        {"op": "write", "lba": 0, "tags": [tag], "result": result}
        for tag, result in ((1, {"ok": True}), (2, {"ok": False, "error": "unknown-outcome"}))
    )
    for tag, excused in ((0, True), (9, False)):
        read = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [tag]}}
        created = {"op": "create", "blocks": 4, "result": {"ok": True}}
        crash = {"op": "crash", "result": {"ok": True}}
        trace = Trace(hello, [created, written, unknown, crash, read])
        (verdict,) = judge([trace], MODEL)
        assert verdict.kind == "no-order" and "none exists for" in drawn(trace, verdict).actual
        assert fault_excuses.excuses(("lying-flush@all",), trace, verdict) == excused


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_on_the_command_line(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = call(
        "run",
        "--target",
        "refmodel",
        "--faults",
        "misdirected-write@all",
        "--traces",
        20,
        "--seed",
        4,
        "--json",
        found,
        "--report",
        tmp_path / "out",
    )
    result = json.loads(found.read_text())
    assert (
        done.exit_code == 0 and result["faults"] == ["misdirected-write@all"] and result["excused"]
    ), done.output
    assert "failures that an honest engine may show" in " ".join(done.output.split())
    trace = tmp_path / "out" / "traces" / "00000.jsonl"
    assert (
        json.loads(trace.read_text().splitlines()[0])["options"]["faults"]
        == "misdirected-write@all"
    ), "a replay has it too"


@pytest.mark.parametrize(
    "words, says",
    [
        (["--target", "refmodel", "--faults", "gremlins"], "no fault 'gremlins'"),
        (["--target", "model", "--faults", "bit-flip"], "media that the kit owns"),
        (
            ["--target", "refmodel", "--faults", "bit-flip", "--crashes", "exhaustive"],
            "--without, --faults and --overlap are for random runs",
        ),
    ],
)
def test_wrong_usage(words: list[str], says: str) -> None:
    done = call("run", *words)
    assert (
        done.exit_code == 2
        and says in " ".join(done.output.split())
        and "Traceback" not in done.output
    )
