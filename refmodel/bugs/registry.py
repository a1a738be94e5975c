"""The planted bugs by name, and the two ways to plant one.

A bug replaces public methods of one disk, or of one of its parts: each is a named seam.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

D = TypeVar("D")  # the class of the disk that has the bug


@dataclass(frozen=True)
class Bug:
    """A bug that can be planted."""

    number: int  # in the list of bugs that the project works through
    evidence: str  # where a real engine had it
    what: str
    plant: Callable[[Any], None]  # called with a disk that is about to recover
    needs: dict[str, Any] = field(default_factory=dict)  # options of the disk that can have it

    @property
    def of_cache(self) -> bool:
        """Whether it is planted in the cache, once the disk behind it is open."""
        return "cache_bytes" in self.needs


BUGS: dict[str, Bug] = {}


def bug(
    number: int, evidence: str, what: str, **needs: Any
) -> Callable[[Callable[[D], None]], Callable[[D], None]]:
    """Return a decorator that registers a function as the bug of its name. See Bug."""

    def register(plant: Callable[[D], None]) -> Callable[[D], None]:
        BUGS[plant.__name__.replace("_", "-")] = Bug(number, evidence, what, plant, needs)
        return plant

    return register


def override(owner: object, method: str, new: Callable[..., Any]) -> None:
    """Replace a method of one object. Raises AttributeError if it has no such method."""
    getattr(owner, method)
    setattr(owner, method, new)


def after(owner: object, method: str, then: Callable[..., None]) -> None:
    """Override a method of one object: `then` runs after it.

    `then` is called with the result of the method and its arguments.
    """
    run = getattr(owner, method)

    def run_then(*args: Any) -> Any:
        result = run(*args)
        then(result, *args)
        return result

    setattr(owner, method, run_then)
