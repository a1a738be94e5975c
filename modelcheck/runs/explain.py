"""A counterexample as a table: one row per step, one column per variable that changes."""

from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from modelcheck.checkers import values
from modelcheck.checkers.tlc import UNNAMED, Result

WIDEST = 36  # characters of a column


def show(result: Result, console: Console, checked: str = "") -> None:
    """Print the counterexample of a run, in several tables where the columns do not fit into one.

    `checked` is the property, where the run had one only: TLC does not always name it."""
    if not result.trace:
        console.print(verdict(result, checked), markup=False)
        return
    names, rows = changed(result)
    actions = [state.action for state in result.trace]
    left = len(str(len(actions))) + 1 + max(map(len, actions))
    for group in _fitting(names, rows, console.width - left):
        table = Table(box=None, pad_edge=False, row_styles=["", "dim"])
        table.add_column("", justify="right")
        table.add_column("action", no_wrap=True)
        for name in group:
            table.add_column(name, max_width=WIDEST, overflow="fold")
        for number, (action, row) in enumerate(zip(actions, rows, strict=True), 1):
            table.add_row(
                str(number), _action(action), *(Text(row.get(name, "")) for name in group)
            )
        console.print(table)
        console.print()
    console.print(verdict(result, checked), markup=False)
    constant = [name for name in result.trace[0].values if name not in names]
    if constant:
        console.print("unchanged: " + ", ".join(constant), markup=False, highlight=False)


def changed(result: Result) -> tuple[list[str], list[dict[str, str]]]:
    """Return the variables that change, and the changes of each step, after the first values."""
    states = [{name: _read(text) for name, text in state.values.items()} for state in result.trace]
    names = [
        name for name in states[0] if any(state.get(name) != states[0][name] for state in states)
    ]
    rows = [{name: values.short(states[0][name]) for name in names}]
    for before, after in pairwise(states):
        rows.append(
            {
                name: "\n".join(values.changes(before[name], after[name]))
                for name in names
                if before[name] != after[name]
            }
        )
    return names, rows


def verdict(result: Result, checked: str = "") -> str:
    """Return the result of a run in a line; `checked` as in `show`."""
    if result.status != "violated":
        return result.message or "No error was found."
    nameless = (
        f"{checked} fails." if checked else "A property of steps or of whole behaviours fails."
    )
    said = {"Deadlock": "No action is possible.", UNNAMED: nameless}
    text = said.get(result.violated, f"{result.violated} fails.")
    if result.lasso:
        text += f" From the last step it goes back to step {result.lasso}, for ever."
    elif result.lasso == 0:
        text += " After the last step nothing happens any more."
    return text


def _read(text: str) -> Any:
    try:
        return values.read(text)
    except values.Unreadable:
        return text  # a value of a kind that this does not know is shown as it is


def _action(action: str) -> str:
    return "Init" if action == "Initial predicate" else action


def _fitting(names: list[str], rows: list[dict[str, str]], room: int) -> list[list[str]]:
    """Return the names in groups whose columns fit side by side."""
    groups: list[list[str]] = [[]]
    used = 0
    for name in names:
        lines = [name, *(line for row in rows for line in row.get(name, "").split("\n"))]
        width = min(WIDEST, max(map(len, lines))) + 2
        if groups[-1] and used + width > room:
            groups.append([])
            used = 0
        groups[-1].append(name)
        used += width
    return groups
