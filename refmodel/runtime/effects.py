"""Effects: the conditions that a process waits for.

A request, and each kind of background work, is a process: a generator that yields effects. Between
two effects it takes a step in memory: an action of the specs, named as there, with the device I/O
that belongs to it. Other processes take their steps between. A power cut ends all processes where
they wait.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Effect:
    """A condition that a process waits for.

    The process may go on when `ready` returns True; at once if it is None.
    """

    what: str
    ready: Callable[[], bool] | None = None


Process = Generator[Effect, None, R]  # it returns R

# Device I/O that comes next. It reaches the device when the process goes on.
READ, WRITE, FLUSH = Effect("read"), Effect("write"), Effect("flush")
TURN = Effect("turn")  # nothing: others may go first
