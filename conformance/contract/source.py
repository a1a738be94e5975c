"""The source of all choices that generation makes: the interface of `random.Random`."""

from typing import Protocol


class Source(Protocol):
    """`random.Random`, or what `hypothesis.strategies.randoms` draws."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop` - 1."""


def rarely(choose: Source, one_in: int) -> bool:
    """Return True one time in `one_in`. The draw of least value, which Hypothesis shrinks to, is
    False.
    """
    return choose.randrange(one_in) == one_in - 1
