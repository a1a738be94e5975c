"""The lists of runs: specs/models.toml, specs/mutation.toml and specs/mutants/*.toml."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modelcheck.checkers.tlc import SPECS


class BadList(Exception):
    """A list of runs cannot be read. The message is one line."""


@dataclass(frozen=True)
class Run:
    """One run of a checker, and what has to come of it; specs/models.toml explains the fields."""

    name: str
    module: str
    purpose: str
    config: str = ""
    group: str = "small"
    size: str = ""
    expect: str = "ok"
    distinct: int | None = None
    depth: int | None = None
    seconds: float | None = None
    unused: dict[str, str] = field(default_factory=dict)
    reaches: list[str] = field(default_factory=list)
    tool: str = "tlc"
    steps: list[list[str]] = field(default_factory=list)
    heap: str = "2g"
    deadlock: bool = True

    @property
    def module_path(self) -> Path:
        """The file of the module."""
        return SPECS / f"{self.module}.tla"

    @property
    def config_path(self) -> Path:
        """The file of the configuration."""
        return SPECS / f"{self.config or self.module}.cfg"


@dataclass(frozen=True)
class Mutant:
    """A piece of text of a spec, what it becomes, and the property that must notice."""

    name: str
    file: str
    old: str
    new: str
    config: str
    property: str
    evidence: str
    what: str
    bug: int | None = None
    group: str = "small"


def runs(group: str | None = None, tool: str = "tlc") -> list[Run]:
    """Return the runs of a group, or all. Raises BadList."""
    found = _read(
        SPECS / "models.toml",
        "run",
        lambda entry: Run(**{("purpose" if k == "for" else k): v for k, v in entry.items()}),
    )
    names = [run.name for run in found]
    if len(set(names)) < len(names):
        raise BadList("models.toml: two runs have one name")
    return [run for run in found if run.tool == tool and group in (None, run.group)]


def mutants() -> list[Mutant]:
    """Return all mutants of all specs. Raises BadList."""
    return [
        mutant
        for path in sorted((SPECS / "mutants").glob("*.toml"))
        for mutant in _read(path, "mutant", lambda entry: Mutant(**entry))
    ]


@dataclass(frozen=True)
class Subject:
    """A spec that is mutated mechanically, and the runs that try its mutants, in this order."""

    spec: str
    runs: list[str]


@dataclass(frozen=True)
class Equivalent:
    """A mechanical mutant that cannot be told from the spec, and why."""

    spec: str
    edit: str
    why: str


def subjects() -> list[Subject]:
    """Return the specs of specs/mutation.toml. Raises BadList."""
    return _read(SPECS / "mutation.toml", "subject", lambda entry: Subject(**entry))


def equivalents() -> dict[tuple[str, str], str]:
    """Return the mutants that are no bugs: (spec, edit) -> reason. Raises BadList."""
    listed = _read(SPECS / "mutation.toml", "equivalent", lambda entry: Equivalent(**entry))
    return {(entry.spec, entry.edit): entry.why for entry in listed}


def _read(path: Path, kind: str, make: Any) -> list[Any]:
    try:
        return [make(entry) for entry in tomllib.loads(path.read_text()).get(kind, [])]
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise BadList(f"{path.name}: {error}") from None
