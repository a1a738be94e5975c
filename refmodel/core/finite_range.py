"""A range of numbers for options of the command lines."""

import math
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
