"""`conformance targets`: the kinds of targets."""

import click

from conformance.targets import KINDS


@click.command()
def targets() -> None:
    """List the kinds of TARGET."""
    width = max(map(len, KINDS)) + 2
    for name, meaning in KINDS.items():
        click.echo(f"{name:{width}}{meaning}")
