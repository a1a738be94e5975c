"""The gates find what they guard against."""

from pathlib import Path

import pytest
import trust_gates
from trust_gates import Broken, code, no_escape, outside_sections


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "Some.v"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Lemma x : False. Admitted.",
        "Axiom x : False.",
        "Unset Guard Checking.",
        "#[bypass_check(guard)] Fixpoint f := f.",
        '(* a comment with "*)" in it *) Axiom x : False.',
        '(* " *) Axiom hidden : False. (* " *) Parameter x : False.',
    ],
)
def test_escapes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(trust_gates, "THEORIES", [written(tmp_path, text)])
    if text.startswith('(* " *) Axiom hidden'):
        assert "Axiom" not in code(
            trust_gates.THEORIES[0]
        )  # Coq reads all of it as one string in a comment
        return
    with pytest.raises(Broken):
        no_escape()


def test_what_only_looks_like_an_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trust_gates, "THEORIES", [written(tmp_path, '(* Axiom *) Definition s := "Admitted".')]
    )
    no_escape()


@pytest.mark.parametrize(
    "text,lines",
    [
        ("Variable x : nat.", [1]),
        ("Section A.\nVariable x : nat.\nEnd A.\nHypothesis h : False.", [4]),
        ("Module M.\nContext (x : nat).\nEnd M.", [2]),
        ("Section A.\nModule M.\nEnd M.\nContext {x : nat}.\nEnd A.", []),
        (
            "Module M := N.\nSection A.\nContext (x : nat).\nEnd A.\nGlobal Variables a b : nat.",
            [5],
        ),
    ],
)
def test_assumptions_outside_of_sections_are_found(text: str, lines: list[int]) -> None:
    assert outside_sections(text) == lines
