"""The gates find what they guard against."""

from pathlib import Path

import pytest
import trust_gates
from gates import MOST_PROOF, long_proofs
from trust_gates import Broken, code, flags, foreign, no_escape, outside_sections


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
        ("Section A. End A. Variable x : False.", [1]),
        ("#[local] Variable x : False.", [1]),
        ("#[global]\n  Polymorphic Hypothesis x : False.", [1]),
        ("Definition a := 1. Context (x : False).", [1]),
        ("Module Import M.\nSection A.\nEnd A.\nVariables a b : False.\nEnd M.", [4]),
        ("Section A.\nModule M.\nEnd M.\nContext {x : nat}.\nEnd A.", []),
        (
            "Module M := N.\nSection A.\nContext (x : nat).\nEnd A.\nGlobal Variables a b : nat.",
            [5],
        ),
    ],
)
def test_assumptions_outside_of_sections_are_found(text: str, lines: list[int]) -> None:
    assert outside_sections(text) == lines


@pytest.mark.parametrize(
    "text",
    ["Load other.", "Time Load other.", "Declare Module M : T.", "Primitive f := #int63_add.",
     "Definition a := 1. Add LoadPath \"x\" as X.", "Redirect \"f\" Print nat."],
)  # fmt: skip
def test_what_no_gate_reads_is_found(text: str) -> None:
    assert foreign(text, extraction=True)


def test_theories_say_nothing_of_extraction() -> None:
    text = 'Lemma a : True. Proof. apply Load. Qed. Extract Constant a => "b".'
    assert foreign(text, extraction=False) == [(1, "Extract")]
    assert foreign(text, extraction=True) == []


@pytest.mark.parametrize(
    "line",
    ["\tcoqc -type-in-type theories/Bad.v", "export COQFLAGS = -impredicative-set",
     "\t@cd build && coqc -q -vos -Q ../theories LogDisk -o Extract.vo ../extraction/Extract.v"],
)  # fmt: skip
def test_other_flags_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    for name in ("Makefile", "_CoqProject"):
        (tmp_path / name).write_text((trust_gates.PROOFS / name).read_text())
    monkeypatch.setattr(trust_gates, "PROOFS", tmp_path)
    flags()
    with (tmp_path / "Makefile").open("a") as makefile:
        makefile.write(f"\nbad:\n{line}\n")
    with pytest.raises(Broken):
        flags()


def test_a_long_proof_is_found() -> None:
    before = "Lemma a : True.\nProof. done. Qed.\nLemma b : True.\n"
    for lines, found in [(MOST_PROOF, []), (MOST_PROOF + 1, [(4, MOST_PROOF + 1)])]:
        steps = "  idtac.\n" * (lines - 2)
        assert long_proofs(f"{before}Proof.\n{steps}Qed.\n") == found
