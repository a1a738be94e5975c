"""The planted bugs by name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bug:
    number: int
    evidence: str  # where a real engine had it
    what: str
    plant: Callable[[Any], None]
    needs: dict[str, Any] = field(default_factory=dict)  # options of the disk that can have it

    @property
    def of_cache(self) -> bool:
        """Whether it is planted in the cache, once the disk behind it is open."""
        return "cache_bytes" in self.needs


BUGS: dict[str, Bug] = {}


def bug(number: int, evidence: str, what: str, **needs: Any):
    def register(plant: Callable[[Any], None]) -> Callable[[Any], None]:
        BUGS[plant.__name__.replace("_", "-")] = Bug(number, evidence, what, plant, needs)
        return plant

    return register


def after(owner: Any, method: str, then: Callable[..., None]) -> None:
    """Override a method of one object: once it has run, `then` is called with its result and its arguments."""
    run = getattr(owner, method)

    def run_then(*args: Any) -> Any:
        result = run(*args)
        then(result, *args)
        return result

    setattr(owner, method, run_then)
