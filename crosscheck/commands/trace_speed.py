"""`crosscheck trace-speed`: the speed at which traces are judged."""

import click

from crosscheck.commands.parameters import target_option
from crosscheck.trace_speed import measure
from modelcheck.commands.output import console, table


@click.command("trace-speed")
@click.option(
    "--events",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    help="Number of events; may be repeated.  [default: 1000, 10000, 100000]",
)
@target_option("model:ack", "The target whose traces are judged.")
def trace_speed(sizes: tuple[int, ...], target: str) -> None:
    """Measure how many events of traces TLC judges per second.

    Its start-up and the check of refinement are included. The Python model judges the same traces.
    """
    rows = table(
        "traces",
        "events",
        "TLC s",
        "of it start-up",
        "events/s",
        "after start-up",
        "model events/s",
        "TLC : model",
    )
    for speed in measure(list(sizes) or [1000, 10_000, 100_000], target=target):
        rows.add_row(
            f"{speed.traces:,}",
            f"{speed.events:,}",
            f"{speed.tlc_seconds:.1f}",
            f"{speed.start_up:.1f}",
            f"{speed.tlc_rate:,.0f}",
            f"{speed.running_rate:,.0f}",
            f"{speed.model_rate:,.0f}",
            f"{speed.tlc_rate / speed.model_rate:.2f}",
        )
    console.print(rows)
