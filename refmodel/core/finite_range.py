"""Ranges of numbers for options of the command lines."""

import math
import sys
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinity, which click.FloatRange lets through."""

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, context)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, context)
        return number


class CountRange(click.IntRange):
    """A range of whole numbers that has no end, without those that the machine cannot count to."""

    def __init__(self, least: int) -> None:
        super().__init__(min=least)

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        number: int = super().convert(value, param, context)
        if number > sys.maxsize:
            self.fail(f"{value} is not in the range: it is too large.", param, context)
        return number
