"""Running TLC: what it says is understood, what differs from the list is said, and what is missing is named."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from modelcheck import check, models, tlc, traces
from modelcheck.__main__ import main
from modelcheck.models import Mutant, Run

TINY = Run("tiny", "MCVirtualDisk", "a test", config="MCVirtualDisk-ack", distinct=17700, depth=9)


def mutant(name: str) -> Mutant:
    return next(mutant for mutant in models.mutants() if mutant.module == name)


def test_a_broken_contract_is_found_by_the_property_that_guards_it() -> None:
    hunted = check.hunt(mutant("VirtualDisk_acknowledged_early"))
    assert hunted.found and hunted.result.violated == "CrashLeavesOnlyAllowed"
    assert hunted.result.trace[0].values["power"] == "TRUE"
    assert hunted.result.trace[-1].action.startswith("DoCrash")


def test_a_mutant_that_another_property_guards_survives(tmp_path: Path) -> None:
    unguarded = replace(mutant("VirtualDisk_write_past_end"), property="UnmapZeroes")
    config = check._only(tlc.SPECS / "MCVirtualDisk-ack.cfg", unguarded)
    assert "PROPERTY UnmapZeroes" in config and "FlushedStays" not in config and "INVARIANT" not in config
    with pytest.raises(ValueError, match="does not check"):
        check._only(tlc.SPECS / "MCVirtualDisk-ack.cfg", replace(unguarded, property="Nonsense"))


def test_every_difference_from_the_list_is_said() -> None:
    counts = ("distinct", "depth")
    good = tlc.Result("ok", distinct=17700, depth=9, taken={"DoWrite": 3, "DoCrash": 1})
    assert list(check._differences(TINY, good, counts)) == []
    assert list(check._differences(TINY, replace(good, distinct=17701), counts)) == ["distinct: 17701; listed is 17700"]
    assert list(check._differences(replace(TINY, depth=None), good, counts)) == ["depth: 9; listed is nothing"]
    idle = replace(good, taken={"DoWrite": 3, "DoCrash": 0})
    assert list(check._differences(TINY, idle, counts)) == ["action DoCrash was never taken"]
    assert list(check._differences(replace(TINY, unused={"DoCrash": "why"}), idle, counts)) == []
    violated = replace(good, status="violated", violated="Current")
    assert list(check._differences(TINY, violated, counts)) == ["ok was expected; it came to Current"]
    assert list(check._differences(replace(TINY, expect="Current"), violated, counts)) == []
    assert list(check._differences(TINY, tlc.Result("timeout", message="stopped"), counts))[0].startswith("ok was expected; it came to timeout")


def test_lists_are_sound() -> None:
    for run in models.runs(tool="tlc"):
        assert run.module_path.exists() and run.config_path.exists(), run.name
    for listed in models.mutants():
        assert (tlc.SPECS / "mutants" / f"{listed.module}.tla").exists()
        check._only(tlc.SPECS / f"{listed.config}.cfg", listed)


def test_what_is_missing_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "nowhere.jar"))
    done = CliRunner().invoke(main, ["specs", "VirtualDisk-ack"])
    assert done.exit_code == 3 and "TLA2TOOLS_JAR names no jar" in done.stderr and done.stderr.count("\n") == 1
    monkeypatch.delenv("TLA2TOOLS_JAR")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(tlc.Unavailable, match="no `java` on the PATH"):
        tlc.java()


def test_an_unknown_run_is_a_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["specs", "Nonsense"]).exit_code == 2


def test_traces_are_followed_to_the_event_that_does_not_match() -> None:
    header = {"trace": 1, "hello": {"crash_profile": "ack"}}
    ok = {"ok": True}
    good = [
        header,
        {"op": "create", "blocks": 2, "result": ok},
        {"op": "write", "lba": 0, "tags": [1, 2], "result": ok},
        {"op": "snapshot", "name": "s", "result": ok},
        {"op": "write", "lba": 1, "tags": [3], "result": None},
        {"op": "crash", "result": ok},
        {"op": "read", "lba": 0, "count": 2, "result": {"ok": True, "tags": [1, 3]}},
        {"op": "read", "lba": 1, "count": 1, "view": "s", "result": {"ok": True, "tags": [2]}},
        {"op": "write", "lba": 1, "tags": [4, 5], "result": {"ok": False, "error": "out-of-range"}},
    ]
    bad = [*good[:6], {"op": "read", "lba": 0, "count": 2, "result": {"ok": True, "tags": [2, 3]}}, *good[7:]]
    assert traces.follow([good, bad, good], "TraceVirtualDisk", "TraceVirtualDisk-ack") == [8, 5, 8]
