"""`overlap-speed`: the cost of traces, by the number of requests in flight."""

import sys

import click

from crosscheck import overlap_speed as speed
from crosscheck.commands.parameters import target_option


@click.command("overlap-speed")
@target_option("refmodel:log-structured", "The target.")
@click.option(
    "--traces", type=click.IntRange(1), default=200, show_default=True, help="Number of traces."
)
@click.option(
    "--ops", type=click.IntRange(1), default=60, show_default=True, help="Operations per trace."
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the programs."
)
def overlap_speed(target: str, traces: int, ops: int, seed: int) -> None:
    """Measure traces with 1, 4 and 8 requests in flight.

    It drives them, and the model judges them.

    Exit status: 1 if a trace failed.
    """
    click.echo("in flight   traces   ops per trace   ms to drive   ms to judge   traces per CPU s")
    failed = 0
    for one in speed.measure(target, [1, 4, 8], traces=traces, ops=ops, seed=seed):
        click.echo(
            f"{one.in_flight:9}{one.traces:9,}{one.operations / one.traces:16.0f}"
            f"{1000 * one.driving / one.traces:14.1f}{1000 * one.judging / one.traces:14.1f}"
            f"{one.rate:19.1f}"
            + (f"   {one.undecided} undecided" if one.undecided else "")
            + (f"   {one.failed} failed" if one.failed else "")
        )
        failed += one.failed
    sys.exit(1 if failed else 0)
