"""The severity of each mutant, and whether the kit finds enough of each class.

A mutant that was found is of the class that its failure shows. A survivor is of the class that
explained.toml gives it with a reason; one that is not explained there counts as one that can lose
data.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from conformance.judging.verdict import WRONG_DATA
from crosscheck.engine_mutation.survey import BY, UNFOUND, Mutant, Tried, population

EXPLAINED = Path(__file__).with_name("explained.toml")
DATA, CONTRACT, COST = "data", "contract", "cost"
OUTSIDE, EQUIVALENT = "outside", "equivalent"
WORDS = {
    DATA: "can lose or change data",
    CONTRACT: "breaks the contract otherwise",
    COST: "only costs more",
    OUTSIDE: "no request of the dialogue leads there",
    EQUIVALENT: "equivalent",
}
SHARE_WANTED = {DATA: 1.0, CONTRACT: 0.9}  # found by the kit alone
LOSES_DATA = WRONG_DATA | {
    "torn",
    "garbage",
    "half-done",
    "not-a-prefix",
    "lost-snapshot",
    "resurrected-snapshot",
    "lost-data",
    "unopenable",
}


class Explained(NamedTuple):
    """The reason why a survivor survives, and its class."""

    kind: str
    why: str


class Sorted(NamedTuple):
    """A mutant that was tried, its class, and the explanation if it is a survivor that has one."""

    tried: Tried
    kind: str
    why: str


def explained() -> dict[tuple[str, str], Explained]:
    """Return the survivors that are explained: (module, change) -> class and reason.

    Raises ValueError if a class is none.
    """
    listed = tomllib.loads(EXPLAINED.read_text())["mutant"]
    for one in listed:
        if one["kind"] not in WORDS:
            raise ValueError(f"{EXPLAINED.name}: there is no class {one['kind']!r}")
    return {(one["module"], one["change"]): Explained(one["kind"], one["why"]) for one in listed}


def survivors(kinds: Iterable[str]) -> list[Mutant]:
    """Return the mutants that are explained as survivors of these classes, class by class."""
    known = explained()
    here = {(name, str(change)): (name, change) for name, change in population()}
    return [here[one] for kind in kinds for one, why in known.items() if why.kind == kind]


def sort(tried: Iterable[Tried]) -> list[Sorted]:
    """Return each mutant with its class."""
    known = explained()
    return [_sorted(one, known.get((one.module, one.change))) for one in tried]


def _sorted(one: Tried, known: Explained | None) -> Sorted:
    if one.by not in UNFOUND:
        return Sorted(one, DATA if one.how in LOSES_DATA else CONTRACT, "")
    return Sorted(one, *(known or (DATA, "")))


def table(mutants: Iterable[Sorted]) -> dict[str, Counter[str]]:
    """Return the number of mutants by class and finder: class -> one of BY -> number."""
    rows = {kind: Counter(dict.fromkeys(BY, 0)) for kind in WORDS}
    for one in mutants:
        rows[one.kind][one.tried.by] += 1
    return rows


def share(row: Counter[str]) -> float:
    """Return the share of the mutants of a class that the kit found; 1 if there are none."""
    found = sum(number for by, number in row.items() if by not in UNFOUND)
    return found / row.total() if row.total() else 1.0


def enough(rows: dict[str, Counter[str]]) -> bool:
    """Return whether the kit found as many of each class as it should."""
    return all(share(rows[kind]) >= wanted for kind, wanted in SHARE_WANTED.items())
