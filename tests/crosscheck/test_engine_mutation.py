"""Mechanical mutants of the engines: each is one change, the same number is the same change, and a
trial finds a bug.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from crosscheck.engine_mutation import survey
from crosscheck.engine_mutation.changes import REACHED, changed, changes

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


def test_each_change_is_one_and_none_is_of_words():
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


def test_all_engines_have_changes_and_what_fails_them_on_purpose_has_none():
    modules = {name for name, _ in survey.population()}
    assert {name.split(".")[1] for name in modules} == set(survey.PACKAGES)
    assert not any(name.endswith(survey.EQUIPMENT) for name in modules)


def trial(module: str, text: str, tmp_path: Path) -> dict:
    source = (ROOT / Path(*module.split(".")).with_suffix(".py")).read_text()
    number = next(change.number for change in changes(source) if str(change) == text)
    words = [module, str(number), "20", "1", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "crosscheck.engine_mutation.trial", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_trial_finds_a_bug_and_says_that_it_ran(tmp_path):
    found = trial(
        "refmodel.log_structured.state", "self.pages.write_dirty()  ->  (dropped)", tmp_path
    )
    assert found["how"] not in ("survived", "hang") and found["reached"], found
    assert not list(tmp_path.iterdir()), "the devices of its disks are cleared away"


def test_survivors_that_are_explained_are_changes_that_exist():
    known = {(name, str(change)) for name, change in survey.population()}
    assert set(survey.notes()) <= known
