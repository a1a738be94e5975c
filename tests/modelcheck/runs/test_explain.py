"""Counterexamples: values are read, and only changes are shown. recorded/ has TLC's output."""

from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from modelcheck.__main__ import main
from modelcheck.checkers import tlc, values
from modelcheck.checkers.values import Key, Sequence, Set, Text
from modelcheck.runs import explain

RECORDED = Path(__file__).parent / "recorded"


def shown(name: str, width: int = 120) -> str:
    console = Console(width=width, record=True, file=StringIO())
    explain.show(tlc.parse((RECORDED / f"{name}.txt").read_text()), console)
    return console.export_text()


def test_values_of_every_kind_are_read() -> None:
    assert values.read("-12") == -12
    assert values.read("TRUE") == "TRUE" and values.read("d1") == "d1"
    assert values.read('"a b"') == Text("a b") and isinstance(values.read('"d1"'), Text)
    assert values.read("<< >>") == {} and values.read("<<1, <<2>>>>") == Sequence(
        {1: 1, 2: Sequence({1: 2})}
    )
    assert values.read("{ }") == Set(()) and values.read('{"a", {3}}') == Set(
        (Text("a"), Set((3,)))
    )
    assert values.read("[live |-> (0 :> 1 @@ 1 :> z), ok |-> TRUE]") == {
        "live": {0: 1, 1: "z"},
        "ok": "TRUE",
    }
    assert values.read("(<<1, 2>> :> 3)") == {Key("<<1, 2>>"): 3}
    assert values.read("0..3") == "0..3"


@pytest.mark.parametrize("text", ["", "<<1, 2", "[a |-> ]", "(1 |-> 2)", "1 2", "{1}}", "?"])
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(values.Unreadable):
        values.read(text)


def test_values_are_written_short() -> None:
    for text, short in [
        ("(0 :> {1} @@ 1 :> {})", "[0: {1}, 1: {}]"),
        ('[a |-> "x", b |-> ""]', '[a: x, b: ""]'),
        ('<<"x y", z>>', '<<"x y", z>>'),
        ("<<>>", "<<>>"),
    ]:
        assert values.short(values.read(text)) == short


@pytest.mark.parametrize("old, new, expected", [
    ("1", "2", ["2"]),
    ("1", "1", []),
    ("(0 :> 1 @@ 1 :> 1)", "(0 :> 1 @@ 1 :> 2)", ["[1]: 2"]),
    (
        "[live |-> <<5, 6>>, snaps |-> <<>>]",
        "[live |-> <<5, 7>>, snaps |-> [s |-> <<5>>]]",
        ["live[2]: 7", "+snaps.s: <<5>>"],
    ),
    ('("a b" :> 1 @@ "c" :> 2)', '("a b" :> 3)', ['["a b"]: 3', "-c"]),
    ("{1, 2}", "{2, 3}", ["-{1}", "+{3}"]),
    ("{[to |-> 1, v |-> 2]}", "{[to |-> 1, v |-> 3]}", ["v: 3"]),
    ("{[to |-> 1], [to |-> 2]}", "{[to |-> 2]}", ["-{[to: 1]}"]),
    ("<<1>>", "<<1, 2>>", ["+[2]: 2"]),
    ("<<1>>", "<<>>", ["-[1]"]),
    ("(<<1, 1>> :> n)", "(<<1, 1>> :> z)", ["[<<1, 1>>]: z"]),
    ("{}", "<<>>", ["<<>>"]),
    ("[a |-> 1]", "[b |-> 1]", ["[b: 1]"]),
])  # fmt: skip
def test_only_what_changed_is_said(old: str, new: str, expected: list[str]) -> None:
    assert list(values.changes(values.read(old), values.read(new))) == expected


def test_a_violated_invariant() -> None:
    names, rows = explain.changed(tlc.parse((RECORDED / "safety.txt").read_text()))
    assert names == ["seen", "on"]
    assert rows == [{"seen": "<<>>", "on": "FALSE"},
                    {"seen": "+[1]: [lamp: FALSE, at: [3: 0]]", "on": "TRUE"},
                    {"seen": "+[2]: [lamp: TRUE, at: [3: 1]]", "on": "FALSE"}]  # fmt: skip
    text = shown("safety")
    assert [line.split()[:2] for line in text.splitlines()[1:4]] == [
        ["1", "Init"],
        ["2", "Press"],
        ["3", "Press"],
    ]
    assert "Never fails.\nunchanged: idle\n" in text


def test_a_narrow_terminal_gets_one_table_after_the_other() -> None:
    text = shown("safety", width=50)
    assert text.count("action") == 2 and max(map(len, text.splitlines())) <= 50


def test_what_the_end_of_a_counterexample_is_is_said() -> None:
    assert "goes back to step 1, for ever" in shown("liveness")
    assert "After the last step nothing happens any more" in shown("stuttering")
    assert "No action is possible" in shown("deadlock")
    assert "Grows fails" in shown("step")
    assert "A property of steps or of whole behaviours fails" in shown("liveness")
    assert len(tlc.parse((RECORDED / "step.txt").read_text()).trace) == 4


def test_why_there_is_no_verdict_ends_before_the_states() -> None:
    """As TLC says it of an action that forgets an UNCHANGED."""
    incomplete = "Error: Successor state is not completely specified by action Press.\n"
    text = (RECORDED / "safety.txt").read_text()
    result = tlc.parse(text.replace("Error: Invariant Never is violated.\n", incomplete))
    said = "Successor state is not completely specified by action Press."
    assert (result.status, result.message) == ("error", said)


def test_liveness_is_recognised() -> None:
    assert [
        tlc.parse((RECORDED / f"{name}.txt").read_text()).liveness
        for name in ("liveness", "stuttering", "safety", "step")
    ] == [True, True, False, False]


def test_the_command_reads_files_and_refuses_what_holds_no_counterexample(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["explain", str(RECORDED / "safety.txt")])
    assert done.exit_code == 0 and "Never fails." in done.output
    empty = tmp_path / "empty.txt"
    empty.write_text("hello\n")
    done = CliRunner().invoke(main, ["explain", str(empty)])
    assert (
        done.exit_code == 3
        and "holds no counterexample of TLC: hello" in done.stderr
        and done.stderr.count("\n") == 1
    )
    assert CliRunner().invoke(main, ["explain", "nonsense"]).exit_code == 2
