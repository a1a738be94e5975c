"""Mechanical mutants of the engines: each is one change, the same number is the same change, and a
trial finds a bug.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crosscheck.engine_mutation import severity, survey
from crosscheck.engine_mutation.changes import REACHED, Change, changed, changes
from crosscheck.engine_mutation.survey import Tried

ROOT = Path(__file__).parents[2]
SOURCE = '''
LIMIT = 3

def room(held, blocks, log):
    """Words are left alone: 1 < 2."""
    if held + blocks > LIMIT:
        raise ValueError(f"{held} of {LIMIT} are held, {blocks - 1} more")
    log.append(held, blocks)
    log.emit("room", held=1)
    return [one for one in range(blocks) if one != held]
'''


def test_each_change_is_one_and_none_is_of_words() -> None:
    found = changes(SOURCE)
    texts = {str(change) for change in found}
    assert {
        "held + blocks > LIMIT  ->  held + blocks >= LIMIT",
        "held + blocks > LIMIT  ->  not held + blocks > LIMIT",
        "held + blocks  ->  held - blocks",
        "log.append(held, blocks)  ->  (dropped)",
        "log.append(held, blocks)  ->  log.append(blocks, held)",
        "one != held  ->  one == held",
        "range(blocks)  ->  blocks",
    } <= texts
    assert not any("emit" in text or "more" in text.partition("->")[2] for text in texts)
    original = ast.unparse(ast.parse(SOURCE))
    made = [ast.unparse(changed(SOURCE, change.number)) for change in found]
    assert len(set(made)) == len(made) and original not in made
    assert all(source.count(REACHED) == 1 for source in made)
    for source in made:
        lines = [line for line in source.splitlines() if REACHED not in line]
        assert lines != original.splitlines()
    with pytest.raises(ValueError, match="no change number"):
        changed(SOURCE, len(found))


def test_changes_that_read_alike_are_told_apart() -> None:
    source = "def f(): g()\ndef h():\n    g()\n    g()\n    x[0] = 1"
    assert [str(change) for change in changes(source)][:3] == [
        "g()  ->  (dropped)  in  f",
        "g()  ->  (dropped)  in  h",
        "g()  ->  (dropped)  in  h, number 2",
    ]


def test_all_engines_have_changes_and_what_fails_them_on_purpose_has_none() -> None:
    modules = {name for name, _ in survey.population()}
    assert {name.split(".")[1] for name in modules} == set(survey.PACKAGES)
    assert not any(name.endswith(survey.EQUIPMENT) for name in modules)


def trial(module: str, text: str, tmp_path: Path, seconds: int = 20) -> dict[str, Any]:
    source = (ROOT / Path(*module.split(".")).with_suffix(".py")).read_text()
    number = next(change.number for change in changes(source) if str(change) == text)
    words = [module, str(number), "refmodel", str(seconds), "1", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "crosscheck.engine_mutation.trial", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_trial_finds_a_bug_and_says_that_it_ran(tmp_path: Path) -> None:
    found = trial("refmodel.log_structured.state", "self.pages.freeze()  ->  (dropped)", tmp_path)
    assert found["how"] not in ("survived", "hang") and found["reached"], found
    assert not list(tmp_path.iterdir()), "the devices of its disks are cleared away"


def test_a_trial_that_finds_nothing_ends_with_the_trace_that_is_under_way(tmp_path: Path) -> None:
    found = trial("refmodel.media.device", "file >= 0  ->  file > 0", tmp_path, seconds=1)
    assert found["how"] == "survived", found
    assert 0 < found["operations"] < 8000, "a part of 100 traces has 20,000"


def test_a_process_that_takes_more_of_the_processor_than_it_should_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "KEPT", tmp_path / "build" / "kept.jsonl")
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nulimit -S -t 1\nwhile :; do :; done\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    (one,) = survey.survey(survey.drawn(1, 21), "refmodel", 1, 1, 1, False)
    assert (one.how, one.by) == ("hang", "crash")


def test_each_survivor_that_is_explained_is_one_change_that_exists() -> None:
    times = Counter((name, str(change)) for name, change in survey.population())
    assert not [one for one in severity.explained() if times[one] != 1]


def test_the_survivors_of_a_class_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data, cost = survey.drawn(2, 1)
    known = {
        (data[0], str(data[1])): severity.Explained(severity.DATA, "because"),
        (cost[0], str(cost[1])): severity.Explained(severity.COST, "because"),
    }
    monkeypatch.setattr(severity, "explained", lambda: known)
    assert severity.survivors([severity.DATA]) == [data]
    assert severity.survivors([severity.COST, severity.DATA]) == [cost, data]


def of(by: str, how: str, *, module: str = "refmodel.none", seconds: float = 20.0) -> Tried:
    return Tried(module, 0, 1, "a  ->  b", by, how, 10, seconds, True, "")


def test_a_mutant_has_the_class_of_its_failure_and_an_unexplained_survivor_loses_data() -> None:
    tried = [of("contract", "stale"), of("contract", "wrong-refusal"), of("crash", "exit")]
    rows = severity.table(severity.sort([*tried, of("nothing", "survived")]))
    assert severity.share(rows[severity.DATA]) == 0.5 and not severity.enough(rows)
    assert severity.share(rows[severity.CONTRACT]) == 1
    assert severity.enough(severity.table(severity.sort(tried)))


def test_what_is_explained_has_its_class_and_contract_breakers_may_escape_one_in_ten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {("refmodel.known", "a  ->  b"): severity.Explained(severity.CONTRACT, "because")}
    monkeypatch.setattr(severity, "explained", lambda: known)
    survivor = of("unit tests", "survived", module="refmodel.known")
    found = [of("crash", "exit")] * 9
    assert severity.sort([survivor])[0].why == "because"
    assert severity.enough(severity.table(severity.sort([survivor, *found])))
    assert not severity.enough(severity.table(severity.sort([survivor, *found[1:]])))


def test_a_run_with_more_seconds_tries_only_the_survivors_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def tried(name: str, change: Change, target: str, seconds: float, seed: int) -> Tried:
        asked.append((name, change.number, seconds))
        by, how = ("contract", "stale") if change.number % 2 else ("nothing", "survived")
        return Tried(name, change.number, change.line, str(change), by, how, 1, seconds, True, "")

    monkeypatch.setattr(survey, "KEPT", tmp_path / "build" / "kept.jsonl")
    monkeypatch.setattr(survey, "_tried", tried)
    mutants = survey.drawn(20, 1)
    first = list(survey.survey(mutants, "refmodel", 1, 5.0, 1, False))
    assert list(survey.survey(mutants, "refmodel", 1, 5.0, 1, False)) == first and len(asked) == 20
    survivors = {(one.module, one.number) for one in first if one.by == "nothing"}
    assert 0 < len(survivors) < 20
    again = list(survey.survey(mutants, "refmodel", 1, 9.0, 1, False))
    assert [one.by for one in again] == [one.by for one in first]
    assert {(name, number) for name, number, seconds in asked if seconds == 9.0} == survivors
    assert len(asked) == 20 + len(survivors)
