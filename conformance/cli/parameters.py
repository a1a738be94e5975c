"""Parameters of several commands (the target, the oracles), and the exit status of each verdict."""

import os
from pathlib import Path
from typing import Any

import click

from commandline.output_file import STDOUT
from conformance import targets
from conformance.judging import oracles

STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


class TargetName(click.ParamType[targets.Factory]):
    """The value of `--target`: a name that resolves to a factory of targets."""

    name = "target"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> targets.Factory:
        if isinstance(value, targets.Factory):
            return value
        try:
            return targets.resolve(value)
        except targets.NoSuchTarget as error:
            self.fail(str(error), param, context)


class OracleNames(click.ParamType[dict[str, Any]]):
    """The value of `--oracle`: a comma list of oracles."""

    name = "oracle,..."

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        try:
            return oracles.together(value.split(","))
        except oracles.NoSuchOracle as error:
            self.fail(str(error), param, context)


class Recorded(click.Path):
    """A file of a recorded trace, or a `folder` of such files."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(exists=True, dir_okay=folder)

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Path:
        if not os.fspath(value):
            self.fail("'' names no file", param, context)
        return Path(os.fsdecode(super().convert(value, param, context)))


def refuse_same_file(**outputs: Path | None) -> None:
    """Raise UsageError if two of these options name the same file; a device may take both.

    STDOUT may not: a program is to read what is there."""
    options: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or path.exists() and not path.is_file() and path != STDOUT:
            continue
        if (other := options.setdefault(path.resolve(), option)) != option:
            raise click.UsageError(f"--{other} and --{option} are the same file, {path}")


target_option = click.option(
    "--target",
    "factory",
    type=TargetName(),
    required=True,
    help="The target to test; `conformance targets` lists the kinds.",
)
oracle_option = click.option(
    "--oracle",
    "judges",
    type=OracleNames(),
    default="model",
    show_default=True,
    help="The judges, a comma list: model (the contract in Python), tlc (TLC on the specs, which "
    "also judges the engine's own events), certified (the checker that is proved correct in Coq; "
    "it always judges once `make proofs` has built it).",
)
