"""docs/self-test.md says of each bug where it is planted, or why it is not; and it says
what is so.
"""

import json
import re
import tomllib
from pathlib import Path

from conformance.programs.swarm import CAPABILITIES, IN_FLIGHT
from refmodel.bugs import BUGS

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_table_is_true() -> None:
    rows = {
        int(number): (engines, specs)
        for number, engines, specs in ROW.findall((ROOT / "docs" / "self-test.md").read_text())
    }
    assert list(rows) == list(range(1, 57))
    mutants: dict[int, set[str]] = {}
    for file in (ROOT / "specs" / "mutants").glob("*.toml"):
        for mutant in tomllib.loads(file.read_text())["mutant"]:
            mutants.setdefault(mutant.get("bug"), set()).add(mutant["name"])
    for number, (engines, specs) in rows.items():
        named = {name for name, bug in BUGS.items() if bug.number == number}
        if named:
            assert named == set(re.findall(r"`([^`]+)`", engines)), number
        else:
            assert engines.startswith(("not planted: ", "cannot exist here: ")), number
        assert mutants.get(number, set()) == (set() if specs == "-" else set(specs.split(", "))), (
            number
        )
        assert named or mutants.get(number) or "tests/" in engines, number


def test_what_a_pass_is_worth_counts_every_planted_bug() -> None:
    found = json.loads((ROOT / "conformance" / "reports" / "found_by_traces.json").read_text())
    assert found["bugs"].keys() == BUGS.keys()
    assert all({*bug["needs"]} <= {*CAPABILITIES, IN_FLIGHT} for bug in found["bugs"].values())
