"""The untrusted search of the certified checker: it finds the orders of long histories, and a wrong
one changes no verdict."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.judging.oracles import certified
from conformance.selftest.overlapping_histories import history
from conformance.selftest.overlapping_model import generated

PROOFS = Path(__file__).parents[2] / "proofs"
SIGNATURE = "let order _ _ _ history = "
WRONG = {
    "nothing": "[]",
    "no step is taken": "List.tl (List.map (fun _ -> Checker.NextMoment 0) history)",
    "each step when it is called": """
      let take = function
        | Checker.Called (id, _) -> [ Checker.NextMoment 0; Checker.TakeStep (id - 1, 0) ]
        | _ -> [ Checker.NextMoment 0 ]
      in
      List.concat_map take (List.tl history)""",
}


@pytest.mark.parametrize("atomic", ["request", "block"])
@pytest.mark.parametrize("profile", ["ack", "prefix", "block"])
def test_histories_of_1000_requests_are_judged(profile: str, atomic: str) -> None:
    # of seed 3, each request may overlap 28 before it: too many orders if blocks are steps
    (opinion,) = certified.judge([generated(4, 1000, profile, atomic, in_flight=8)])
    assert opinion.at is None and not opinion.unsure


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_search_changes_no_verdict(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [history(random.Random(seed), 8, wrong=0.1) for seed in range(150)]
    right = [opinion.at for opinion in certified.judge(some)]
    for name in ("checker.ml", "checker.mli", "oracle.ml"):
        shutil.copy(PROOFS / "build" / name, tmp_path)
    (tmp_path / "propose.ml").write_text(SIGNATURE + WRONG[what])
    command = "ocamlfind ocamlopt -package yojson,unix -linkpkg -w -a"
    sources = ["checker.mli", "checker.ml", "propose.ml", "oracle.ml", "-o", "oracle"]
    subprocess.run([*command.split(), *sources], cwd=tmp_path, check=True)
    monkeypatch.setenv("CERTIFIED_ORACLE", str(tmp_path / "oracle"))
    assert [opinion.at for opinion in certified.judge(some)] == right
    assert {at is None for at in right} == {True, False}
