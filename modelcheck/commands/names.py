"""The arguments NAMES and the option --group, which choose from a list of runs or mutants."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import click


class _Listed(Protocol):
    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=_Listed)

group_option = click.option(
    "--group",
    type=click.Choice(["small", "nightly"]),
    default="small",
    show_default=True,
    help="Ignored if NAMES are given.",
)


def named(entries: Sequence[Entry], names: Sequence[str], what: str, where: str) -> list[Entry]:
    """Return the entries whose names begin with one of `names`, and all if there are no names.

    Raises UsageError for a name that no entry begins with: `what` is "run", `where` its list."""
    for name in names:
        if not any(entry.name.startswith(name) for entry in entries):
            raise click.UsageError(f"there is no {what} '{name}' (see {where})")
    return [entry for entry in entries if not names or entry.name.startswith(tuple(names))]
