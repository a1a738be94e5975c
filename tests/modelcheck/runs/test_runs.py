"""Running TLC: its output is understood, differences from the list and missing tools are named."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from modelcheck.__main__ import main
from modelcheck.checkers import process, tlc, tlc_config
from modelcheck.mutation import planted, syntax
from modelcheck.runs import check, models, naming, traces
from modelcheck.runs.models import Mutant, Run

TINY = Run("tiny", "MCVirtualDisk", "a test", config="MCVirtualDisk-ack", distinct=14432, depth=9)


def mutant(name: str) -> Mutant:
    return next(mutant for mutant in models.mutants() if mutant.name == name)


def test_a_broken_contract_is_found_by_the_property_that_guards_it() -> None:
    hunted = planted.hunt(mutant("VirtualDisk_acknowledged_early"))
    assert hunted.found and hunted.result.violated == "CrashLeavesOnlyAllowed"
    assert hunted.result.trace[0].values["power"] == "TRUE"
    assert hunted.result.trace[-1].action.startswith("DoCrash")


def test_a_mutant_that_another_property_guards_survives() -> None:
    ack = (tlc.SPECS / "MCVirtualDisk-ack.cfg").read_text()
    changed = tlc_config.only(ack, "UnmapZeroes")
    assert "PROPERTY UnmapZeroes" in changed
    assert "FlushedStays" not in changed and "INVARIANT" not in changed and "VIEW Unsaid" in changed
    with pytest.raises(ValueError, match="does not check"):
        tlc_config.only(ack, "Nonsense")
    with pytest.raises(
        ValueError,
        match="VirtualDisk_write_past_end: MCVirtualDisk-ack.cfg: it does not check Nonsense",
    ):
        planted.hunt(replace(mutant("VirtualDisk_write_past_end"), property="Nonsense"))


def test_what_leaves_states_out_needs_a_reason(tmp_path: Path) -> None:
    cfg, module, below = tmp_path / "MC.cfg", tmp_path / "MC.tla", tmp_path / "Below.tla"
    cfg.write_text(
        "SPECIFICATION Spec\nVIEW Seen\nCONSTRAINT Few \\* bounded\n"
        "SYMMETRY\n    Alike\nINVARIANT Sound\n"
    )
    module.write_text(
        "---- MODULE MC ----\nEXTENDS Below, TLC\n(* Why. *)\nSeen ==\n    x\n"
        "Few == x < 3 \\* Why.\nSound == TRUE\n"
    )
    below.write_text("---- MODULE Below ----\n\nAlike == Permutations(Name)\n====\n")
    assert tlc_config.unjustified(cfg, module) == ["Alike"]
    below.write_text("---- MODULE Below ----\n\\* Why.\nAlike == Permutations(Name)\n====\n")
    assert tlc_config.unjustified(cfg, module) == []
    run = Run("r", str(module)[:-4], "a test", config=str(cfg)[:-4])
    assert list(check._unsound(run, tlc.Result("ok"))) == []
    assert [line.split()[-5] for line in check._unsound(run, tlc.Result("ok", liveness=True))] == [
        "Seen",
        "Few",
        "Alike",
    ]


def test_every_reduction_in_the_specs_has_its_reason() -> None:
    for run in models.runs():
        assert tlc_config.unjustified(run.config_path, run.module_path) == [], run.name


def test_actions_without_a_name_are_told_apart() -> None:
    said = ("The coverage statistics at 2026\n"
            "<Init line 1, col 1 to line 1, col 4 of module M>: 1:1\n"
            "<Next line 3, col 1 to line 3, col 4 of module M (4 8 4 35)>: 2:3\n"
            "<Next line 3, col 1 to line 3, col 4 of module M (5 8 5 35)>: 0:0\n"
            "<Stop line 9, col 1 to line 9, col 4 of module M>: 0:0\n")  # fmt: skip
    result = tlc.parse(said)
    assert result.taken == {"Init": 1, "Next (1 of 2)": 3, "Next (2 of 2)": 0, "Stop": 0}
    assert result.unused == ["Next (2 of 2)", "Stop"]


def test_an_error_ends_what_runs_beside_it() -> None:
    def work(seconds: float) -> float:
        if not seconds:
            raise tlc.Unavailable("gone")
        process.run(["sleep", str(seconds)], None)
        return seconds

    started = time.monotonic()
    with pytest.raises(tlc.Unavailable):
        list(check.side_by_side(work, [60.0, 0.0, 60.0], jobs=2))
    assert time.monotonic() - started < 30 and not process._running


def test_every_difference_from_the_list_is_said() -> None:
    counts = ("distinct", "depth")
    good = tlc.Result("ok", distinct=14432, depth=9, taken={"DoWrite": 3, "DoCrash": 1})
    assert list(check._differences(TINY, good, counts)) == []
    assert list(check._differences(TINY, replace(good, distinct=14433), counts)) == [
        "distinct: 14433; listed is 14432"
    ]
    assert list(check._differences(replace(TINY, depth=None), good, counts)) == [
        "depth: 9; listed is nothing"
    ]
    idle = replace(good, taken={"DoWrite": 3, "DoCrash": 0})
    assert list(check._differences(TINY, idle, counts)) == ["action DoCrash was never taken"]
    assert list(check._differences(replace(TINY, unused={"DoCrash": "why"}), idle, counts)) == []
    violated = replace(good, status="violated", violated="Current")
    assert list(check._differences(TINY, violated, counts)) == [
        "ok was expected; it came to Current"
    ]
    assert list(check._differences(replace(TINY, expect="Current"), violated, counts)) == []
    assert list(check._differences(TINY, tlc.Result("timeout", message="stopped"), counts))[
        0
    ].startswith("ok was expected; it came to timeout")


def test_lists_are_sound() -> None:
    for run in models.runs(tool="tlc"):
        assert run.module_path.exists() and run.config_path.exists(), run.name
    assert len({listed.name for listed in models.mutants()}) == len(models.mutants())


@pytest.mark.parametrize("listed", models.mutants(), ids=lambda listed: listed.name)
def test_a_mutant_is_a_module_that_differs(listed: Mutant, tmp_path: Path) -> None:
    assert listed.file.startswith(listed.name.split("_")[0])
    model = planted.plant(listed, tmp_path)
    assert model.exists() and model.with_suffix(".cfg").exists()
    changed = (tmp_path / listed.file).read_bytes()
    assert changed != (tlc.SPECS / listed.file).read_bytes()
    assert not syntax.PARSER.parse(changed).root_node.has_error


def test_a_mutant_whose_text_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="VirtualDisk_unmap_ignored: .* 0 times in VirtualDisk.tla"
    ):
        planted.plant(replace(mutant("VirtualDisk_unmap_ignored"), old="Nonsense"), tmp_path)


def test_a_property_that_tlc_does_not_name_is_named() -> None:
    said = "Error: Action property line {}, col 1 to line 9, col 2 of module {} is violated."
    text = (tlc.SPECS / "Redundancy.tla").read_text().splitlines()
    patient = next(at for at, line in enumerate(text, 1) if line.startswith("Patient"))
    module = tlc.SPECS / "MCRedundancy.tla"
    config = (tlc.SPECS / "MCRedundancy.cfg").read_text()
    stepped = tlc.parse(said.format(patient + 2, "Redundancy"))
    assert naming.named(stepped, module, config, never) == "Patient"
    contract = (tlc.SPECS / "VirtualDisk.tla").read_text().splitlines()
    spec = next(at for at, line in enumerate(contract, 1) if line.startswith("Spec "))
    refined = tlc.parse(said.format(spec, "VirtualDisk"))
    assert naming.named(refined, module, config, never) == "Refines"
    unsaid = tlc.parse("Error: Temporal properties were violated.")
    assert naming.named(unsaid, module, config, lambda text: _failing(text, "Obeys")) == "Obeys"


def never(config: str) -> tlc.Result:
    raise AssertionError("one property fits: nothing is checked again")


def _failing(config: str, name: str) -> tlc.Result:
    """What TLC would come to if that property alone failed."""
    violated = name in tlc_config.named(config, naming.PROPERTIES)
    return tlc.Result("violated" if violated else "ok", violated=tlc.UNNAMED if violated else "")


def test_what_is_missing_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "nowhere.jar"))
    done = CliRunner().invoke(main, ["specs", "VirtualDisk-ack"])
    assert (
        done.exit_code == 3
        and "TLA2TOOLS_JAR names no jar" in done.stderr
        and done.stderr.count("\n") == 1
    )
    monkeypatch.delenv("TLA2TOOLS_JAR")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(tlc.Unavailable, match="no `java` on the PATH"):
        tlc.java()


def test_an_unknown_run_is_a_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["specs", "Nonsense"]).exit_code == 2
    assert CliRunner().invoke(main, ["mutation", "VirtualDisk", "Nonsense"]).exit_code == 2


def test_what_a_model_reaches_is_compared() -> None:
    said = """<<"reached", {"chunks"}>>
<<"reached", {"snapshots", "chunks"}>>
Model checking completed. No error has been found.
5 states generated, 3 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 2.
"""
    result = tlc.parse(said)
    assert result.reached == {"chunks", "chunks snapshots"}
    run = Run("r", "M", "a test", distinct=3, depth=2, reaches=["chunks", "chunks snapshots"])
    assert list(check._differences(run, result, ("distinct", "depth"))) == []
    other = replace(run, reaches=["chunks", "cleaner"])
    assert list(check._differences(other, result, ("distinct", "depth"))) == [
        "chunks snapshots: reached in one state, and not listed",
        "cleaner: listed, and never reached in one state",
    ]


def test_traces_are_followed_to_the_event_that_does_not_match() -> None:
    header = {"trace": 1, "hello": {"crash_profile": "ack"}}
    ok = {"ok": True}
    good: list[dict[str, Any]] = [
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
    bad = [
        *good[:6],
        {"op": "read", "lba": 0, "count": 2, "result": {"ok": True, "tags": [2, 3]}},
        *good[7:],
    ]
    assert traces.follow([good, bad, good], "TraceVirtualDisk", "TraceVirtualDisk-ack") == [8, 5, 8]
