"""A parameter of several commands: the target."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from conformance import targets

Function = TypeVar("Function", bound=Callable[..., Any])


def target_option(default: str, words: str) -> Callable[[Function], Function]:
    """Return the option `--target`. A name that names no target is wrong usage."""
    return click.option(
        "--target", default=default, show_default=True, callback=_existing, help=words
    )


def _existing(context: click.Context, param: click.Parameter, value: str) -> str:
    """Return the name, which other processes resolve again. Raises BadParameter."""
    try:
        targets.resolve(value)
    except targets.NoSuchTarget as error:
        raise click.BadParameter(str(error)) from None
    return value
