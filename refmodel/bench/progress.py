"""Shows the progress of a bench run on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from refmodel.bench.clients import Window
from refmodel.bench.results import percentile


@contextmanager
def progress(name: str) -> Iterator[Callable[[Window, int, int], None]]:
    """Yield a function to call after each window.

    It shows a line on stderr. If stderr is not a terminal, it shows nothing.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[now]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"{name}: filling the disk", total=None, now="")

        def show(window: Window, done: int, of: int) -> None:
            per = window.devices.ios["foreground"] / window.operations
            rate = window.operations / window.seconds if window.seconds else 0.0
            p99 = percentile([window], 99)
            now = f"{rate:,.0f} ops per s, p99 {p99:,.0f} us, {per:.2f} I/Os per op"
            bar.update(
                task, description=f"{name}: {window.phase}", completed=done, total=of, now=now
            )

        yield show
