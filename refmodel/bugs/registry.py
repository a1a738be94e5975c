"""The planted bugs by name, and how a bug replaces a part of an engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

D = TypeVar("D")  # the class of the disk that has the bug


@dataclass(frozen=True)
class Bug:
    """A planted bug: `plant` is called with a disk that is about to recover."""

    number: int  # in the list of real bugs
    evidence: str  # where a real engine had it
    what: str  # the error, in one sentence
    plant: Callable[[Any], None]
    needs: dict[str, Any] = field(default_factory=dict)  # options of the disk that can have it

    @property
    def of_cache(self) -> bool:
        """True if the bug is planted in the cache, once the disk behind it is open."""
        return "cache_bytes" in self.needs


BUGS: dict[str, Bug] = {}


def bug(
    number: int, evidence: str, what: str, **needs: Any
) -> Callable[[Callable[[D], None]], Callable[[D], None]]:
    """Return a decorator that adds a function to BUGS, under its name with dashes."""

    def register(plant: Callable[[D], None]) -> Callable[[D], None]:
        BUGS[plant.__name__.replace("_", "-")] = Bug(number, evidence, what, plant, needs)
        return plant

    return register


def override(owner: object, method: str, replacement: Callable[..., Any]) -> None:
    """Replace a public method of one object. A bug may replace nothing else."""
    assert not method.startswith("_") and callable(getattr(owner, method)), method
    setattr(owner, method, replacement)


def after(owner: object, method: str, then: Callable[..., None]) -> None:
    """Let `then` run after a public method of one object, with its result and its arguments."""
    run = getattr(owner, method)

    def run_then(*args: Any) -> Any:
        result = run(*args)
        then(result, *args)
        return result

    override(owner, method, run_then)
