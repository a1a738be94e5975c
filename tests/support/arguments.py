"""A type of argument of the programs `python -m support.*`, for argparse."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of a whole number that is `least` or more."""

    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"'{text}' is no number of {least} or more")
        return int(text)

    return convert
