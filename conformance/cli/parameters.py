"""What several commands take: a target, and who judges; and the exit status that each verdict is."""

from typing import Any

import click

from conformance import targets
from conformance.judging import oracles

STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


class TargetName(click.ParamType):
    """What `--target` takes: a name that resolves to a factory."""

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


class OracleNames(click.ParamType):
    """What `--oracle` takes: a comma list of oracles."""

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


target_option = click.option(
    "--target",
    "factory",
    type=TargetName(),
    required=True,
    help="What is tested: see `conformance targets`.",
)
oracle_option = click.option(
    "--oracle",
    "judges",
    type=OracleNames(),
    default="model",
    show_default=True,
    help="Who judges, a comma list: model (the contract in Python), tlc (TLC on specs/, of an engine's inner "
    "events too), certified (the checker proved right in Coq, which joins unasked once "
    "`make proofs` has built it).",
)
