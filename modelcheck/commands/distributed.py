"""`modelcheck distributed`: TLC's own distributed mode."""

import sys

import click

from modelcheck.checkers import distributed as mode
from modelcheck.commands.output import console
from modelcheck.runs import explain, models


@click.command()
@click.argument("name", default="Redundancy-distributed")
@click.option(
    "--hosts",
    default="localhost,localhost",
    show_default=True,
    help="Machines of the workers; ssh has to reach those that are not this one.",
)
@click.option(
    "--server",
    default="127.0.0.1",
    show_default=True,
    help="Name of this machine as the workers see it.",
)
@click.option("--port", default=10997, show_default=True)
@click.option(
    "--jar", default="", help="Path of TLC's jar on the other hosts, if it is not the same as here."
)
@click.option("--timeout", default=3600.0, show_default=True, help="Stop after this many seconds.")
def distributed(name: str, hosts: str, server: str, port: int, jar: str, timeout: float) -> None:
    """Check the invariants of a run on several machines.

    It uses TLC's own distributed mode, which silently ignores PROPERTY and CHECK_DEADLOCK FALSE: a
    config with one of them is refused."""
    run = next((run for run in models.runs() if run.name == name), None)
    if run is None:
        raise click.UsageError(f"there is no run '{name}' (see specs/models.toml)")
    workers = [host.strip() for host in hosts.split(",") if host.strip()]
    try:
        with console.status(f"{name}, {len(workers)} workers"):
            result = mode.check(run, workers, server=server, port=port, jar=jar, timeout=timeout)
    except mode.NotWhole as refused:
        raise click.UsageError(str(refused)) from None
    came = result.violated or result.status
    console.print(
        f"{name}: {came}, {result.distinct:,} distinct states,"
        f" {len(workers)} workers, {result.seconds:.0f} s",
        highlight=False,
    )
    if result.trace:
        explain.show(result, console)
    if came != run.expect or result.distinct != run.distinct and came == "ok":
        click.echo(
            f"{name}: {run.expect} with {run.distinct} distinct states is listed"
            + (f"; {result.message}" if result.message else ""),
            err=True,
        )
        sys.exit(1)
