"""The table of pairs of features in specs/README.md says what the runs reach."""

import re

from modelcheck.checkers.tlc import SPECS
from modelcheck.runs import models

FEATURES = {
    "cleaner": "cleaner",
    "snapshots": "snapshots",
    "several chunks": "chunks",
    "several blocks": "blocks",
    "power cut in recovery": "recovery",
}
APART = {"cleaner", "recovery"}  # nothing moves in recovery: a run reaches both, in no one state


def cells() -> list[tuple[str, str, str]]:
    """Row, column and run of each cell of the table that is of LogStructuredDisk."""
    text = (SPECS / "README.md").read_text().split("### Pairs of features")[1].split("\n### ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    columns = [name.strip("`") for name in rows[0]]
    return [
        (row[0], column, f"LogStructuredDisk-{cell.strip('`')}")
        for row in rows[2:]
        for column, cell in zip(columns[1:], row[1:], strict=True)
        if row[0] in FEATURES and cell
    ]


def test_each_cell_names_a_run_that_reaches_the_pair() -> None:
    runs = {run.name: run for run in models.runs()}
    assert len(cells()) == 20
    for row, column, name in cells():
        run = runs[name]
        assert FEATURES[row] in run.reaches, (row, name)
        if column not in FEATURES:
            assert re.search(rf'Profile = "{column}"', run.config_path.read_text()), (column, name)
        elif {FEATURES[row], FEATURES[column]} == APART:
            assert FEATURES[column] in run.reaches, (column, name)
        else:
            assert " ".join(sorted((FEATURES[row], FEATURES[column]))) in run.reaches, (row, column)


def test_what_is_listed_is_told() -> None:
    """A run with `reaches` checks Tells."""
    for run in models.runs():
        told = "Tells" in run.config_path.read_text().split() if run.tool == "tlc" else False
        assert told == bool(run.reaches), run.name
