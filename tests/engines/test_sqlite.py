"""SQLite as a target. Not run where apsw is not installed: `make engines` installs it."""

import random
from typing import Any

import pytest

from conformance.campaign.results import Campaign
from conformance.contract.trace import Trace
from conformance.targets.base import Message

pytest.importorskip("apsw", reason="NOT RUN: apsw is not installed: make engines")

from conformance import targets
from conformance.campaign.driver import drive
from conformance.campaign.random_campaign import campaign
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.media.files import Files, PowerOff
from conformance.targets.engines.sqlite import MODES

MODEL = {"model": named("model")}


@pytest.mark.parametrize("mode, profile", MODES.items())
def test_it_keeps_the_contract_through_power_cuts(mode: str, profile: str) -> None:
    result = campaign(
        targets.resolve(f"sqlite:mode={mode}"), count=25, ops=30, seed=2, oracles=MODEL
    )
    assert result.verdict == "pass", [
        f.verdict.words(f.trace) for f in result.failures
    ] or result.reason
    first = result.judged[0][0]
    assert isinstance(first, Trace) and first.hello["crash_profile"] == profile
    assert result.skipped == ["device", "fua", "scrub"]
    assert sum(times for (_, outcome), times in result.coverage.items() if outcome == "cut") > 10


def lies(mode: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Return the result of a promise that this mode does not keep."""
    monkeypatch.setitem(MODES, mode, profile)
    return campaign(
        targets.resolve(f"sqlite:mode={mode}"),
        count=300,
        ops=30,
        seed=1,
        oracles=MODEL,
        most_failures=1,
    )


@pytest.mark.parametrize("mode", ["wal-normal", "delete-full"])
def test_a_mode_that_may_lose_the_last_transaction_is_not_ack(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's documentation says so of both. In the second, a journal that was removed is back,
    and takes back a part of what was written since.
    """
    assert lies(mode, "ack", monkeypatch).failures[0].verdict.kind in (
        "lost-acknowledgement",
        "lost-snapshot",
        "stale",
        "resurrected",
        "garbage",
    )


def test_without_syncing_it_is_not_even_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lies("wal-off", "prefix", monkeypatch).verdict == "fail"


def test_files_keep_what_was_synced_and_some_of_the_rest() -> None:
    found = set()
    for seed in range(40):
        files = Files()
        for name in ("a", "b", "c"):
            files.make(name)
        files.write("a", 0, b"1" * 1024)
        files.sync("a")
        files.write("a", 512, b"2" * 2048)
        files.write("b", 0, b"3")
        files.sync("c")
        files.remove("c")
        after = files.after_failure(random.Random(seed))
        with pytest.raises(PowerOff):
            files.write("a", 0, b"4")
        content = after.read("a", 0, 2048)
        assert content.startswith(b"1" * 512)
        found.add((content[512:513], content[1536:1537], "b" in after, "c" in after))
    assert {first for first, *_ in found} == {b"1", b"2"} and {gone for *_, gone in found} == {
        True,
        False,
    }
    assert {(b"1", b"2"), (b"2", b"\0")} <= {(first, second) for first, second, *_ in found}, "torn"


def test_a_removal_is_certain_once_the_folder_is_synced() -> None:
    files = Files()
    files.make("c")
    files.sync("c")
    files.remove("c")
    files.sync_folder()
    assert not any("c" in files.after_failure(random.Random(seed)) for seed in range(20))


def test_what_it_refuses() -> None:
    target = targets.resolve("sqlite")({})

    def ask(op: str, **more: Any) -> str | None:
        return target.request({"op": op, **more}).get("error")

    ask("create", blocks=4)
    assert (
        ask("write", lba=3, data=bytes(1024)) == "out-of-range"
        and ask("delete", name="s") == "no-such-snapshot"
    )
    assert ask("snapshot", name="s") is None and ask("snapshot", name="s") == "snapshot-exists"
    assert ask("snapshot", name="a b") == "bad-request" and ask("tick", seconds=1) == "unsupported"
    trace = drive(
        target,
        [
            {"op": "create", "blocks": 2},
            {"op": "write", "lba": 0, "tags": [1, 2]},
            {"op": "snapshot", "name": "s"},
            {"op": "write", "lba": 0, "tags": [3]},
            {"op": "restart"},
            {"op": "read", "lba": 0, "count": 2, "view": "s"},
            {"op": "revert", "name": "s"},
            {"op": "read", "lba": 0, "count": 2},
        ],
    )
    target.close()
    assert judge([trace], MODEL)[0].verdict == "pass" and trace.events[-1]["result"]["tags"] == [
        1,
        2,
    ]


def test_the_finding_rolled_back_comes_back() -> None:
    """docs/findings: where a newer SQLite has mended it, this fails: then say so there."""
    program: list[Message] = [
        {"op": "create", "blocks": 4},
        {"op": "restart"},
        {"op": "write", "lba": 3, "tags": [1]},
        {"op": "snapshot", "name": "s2"},
        {"op": "write", "lba": 1, "tags": [2]},
        {"op": "snapshot", "name": "s1"},
        {"op": "snapshot", "name": "s3"},
        {"op": "flush"},
        {"op": "write", "lba": 0, "tags": [3]},
        {"op": "crash"},
        {"op": "read", "lba": 0, "count": 1},
        {"op": "write", "lba": 0, "tags": [7], "cut": {"after": 3, "seed": 121}},
        {"op": "crash"},
        {"op": "read", "lba": 0, "count": 1},
    ]
    target = targets.resolve("sqlite")(
        {
            "auto_vacuum": "none",
            "cache_size": 2000,
            "mode": "wal-normal",
            "page_size": 4096,
            "wal_autocheckpoint": 1000,
        }
    )
    trace = drive(target, program, 12584582)
    target.close()
    assert trace.events[10]["result"]["tags"] == [0] and trace.events[13]["result"]["tags"] == [3]
    assert judge([trace], MODEL)[0].at == 13
