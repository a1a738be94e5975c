"""Mechanical mutants: what is changed, that the choice lasts, that the results are kept."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from modelcheck.checkers import tlc
from modelcheck.commands.mutation import mutation
from modelcheck.mutation import changes, survey, syntax
from modelcheck.runs import models
from modelcheck.runs.models import Subject

MODULE = rb"""---- MODULE Shelf ----
EXTENDS Integers
CONSTANT Size
VARIABLES held, lost
vars == <<held, lost>>
Room == held < Size /\ lost = {}
Take(n) ==
    /\ Room
    /\ n \in 1 .. Size - held
    /\ held' = held + n
    /\ UNCHANGED lost
Lose ==
    /\ IF held > 0 THEN held' = held - 1 ELSE held' = held
    /\ lost' = [lost EXCEPT ![1] = {held}]
Init == held = 0 /\ lost = {}
Next == Lose \/ \E n \in 1 .. Size : Take(n)
Safe == held <= Size
====
"""


def test_what_a_module_does_is_changed_and_what_it_promises_is_not() -> None:
    assert [edit.name for edit in changes.edits(MODULE)] == [
        "Room: drop conjunct: /\\ lost = {}",
        "Room: drop conjunct: held < Size /\\",
        "Room: change relation: < -> <=",
        "Room: change relation: = -> #",
        "Take: drop conjunct: /\\ Room",
        "Take: negate: Room -> ~(Room)",
        "Take: drop conjunct: /\\ n \\in 1 .. Size - held",
        "Take: negate: n \\in 1 .. Size - held -> ~(n \\in 1 .. Size - held)",
        "Take: change relation: \\in -> \\notin",
        "Take: move bound: 1 -> 1 + 1",
        "Take: move bound: Size - held -> Size - held - 1",
        "Take: drop operand: - held",
        "Take: forget update: held + n -> held",
        "Take: drop operand: + n",
        "Lose: negate: held > 0 -> ~(held > 0)",
        "Lose: change relation: > -> >=",
        "Lose: forget update: held - 1 -> held",
        "Lose: drop operand: - 1",
        "Lose: forget update: [lost EXCEPT ![1] = {held}] -> lost",
        "Lose: drop EXCEPT: [lost EXCEPT ![1] = {held}] -> lost",
    ]
    dropped = next(
        edit for edit in changes.edits(MODULE) if edit.name == "Take: drop conjunct: /\\ Room"
    )
    assert b"Take(n) ==\n    \n    /\\ n \\in" in dropped.apply(MODULE) and dropped.line == 8


def test_the_choice_is_by_the_seed_and_lasts_when_other_things_change() -> None:
    chosen = [edit.name for edit in changes.sample("Shelf", MODULE, 5, seed=1)]
    later = MODULE.replace(b"Safe ==", b"Bare == held = 0\nSafe ==").replace(
        b"VARIABLES", b"\\* Where they stand.\nVARIABLES"
    )
    assert [edit.name for edit in changes.sample("Shelf", later, 5, seed=1)] == chosen
    assert [edit.name for edit in changes.sample("Shelf", MODULE, 5, seed=2)] != chosen


@pytest.mark.parametrize("subject", models.subjects(), ids=lambda subject: subject.spec)
def test_every_mutant_of_the_specs_is_a_module(subject: Subject) -> None:
    source = survey._source(subject.spec)
    below = survey._below(subject.spec)
    found = changes.edits(source, below)
    assert len(found) >= 60 and len({edit.name for edit in found}) == len(found)
    for edit in changes.sample(subject.spec, source, 35, seed=1, below=below):
        assert not syntax.PARSER.parse(edit.apply(source)).root_node.has_error, edit.name
        assert edit.apply(source) != source
    names = {edit.name for edit in found}
    assert [
        edit for spec, edit in models.equivalents() if spec == subject.spec and edit not in names
    ] == []


def test_mutants_are_killed_and_what_was_found_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject("CachedDisk", ["CachedDisk-tiny"])
    edits = {edit.name: edit for edit in changes.edits(survey._source("CachedDisk"))}
    chosen = [
        edits["Emptied: forget update: Cold(Slots(cache)) -> cache"],
        edits["CopySlot: drop conjunct: /\\ cache[slot] # {}"],
    ]
    monkeypatch.setattr(survey, "KEPT", tmp_path / "kept.jsonl")
    monkeypatch.setattr(models, "subjects", lambda: [subject])
    monkeypatch.setattr(changes, "sample", lambda *_: chosen)
    monkeypatch.setattr(
        models,
        "equivalents",
        lambda: {("CachedDisk", chosen[1].name): "a step that changes nothing"},
    )
    first = {tried.edit: (tried.how, tried.by) for tried in survey.survey(2, 1, 2)}
    assert first == {
        chosen[0].name: ("property", "CachedDisk-tiny: Coherent"),
        chosen[1].name: ("equivalent", "a step that changes nothing"),
    }
    monkeypatch.setattr(tlc, "run", None)
    assert {tried.edit: (tried.how, tried.by) for tried in survey.survey(2, 1, 2)} == first


def test_a_survey_of_no_mutants_is_wrong_usage() -> None:
    done = CliRunner().invoke(mutation, ["--count", "0"])
    assert done.exit_code == 2
    assert "0 is not in the range x>=1" in done.stderr.splitlines()[-1]
