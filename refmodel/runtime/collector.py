"""Python's collector of cycles: a full collection goes on only in idle moments.

A full collection looks at every object of the process. With the nodes of a large disk in memory
this takes tens of milliseconds, at a moment that has nothing to do with any operation. It finds
nothing of the engine, which makes no cycles: what it drops, the reference counts free. Connections
and errors of a server may be in cycles, so collections are put off, not left out: young objects are
collected more often than usual, so that each time there are few of them, and the rest when no
request waits. A server that is never idle does a full collection, too, but rarely.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, MIDDLE = 100, 1  # thresholds for young objects. They count new objects less those dropped:
# where as many are dropped as come, thousands gather before the usual threshold is reached.
RARELY = 2000  # times as many objects as usual until Python does a full collection by itself
DUE = 233  # collections of young objects after which an idle moment is used: as rare as usual


@contextmanager
def full_collections_in_idle_moments() -> Iterator[None]:
    """Let only `collect_if_due` do full collections in this `with` block.

    Python by itself does one only rarely then.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(YOUNG, MIDDLE, RARELY * young * middle * old // (YOUNG * (MIDDLE + 2)))
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


def collect_if_due() -> None:
    """Do a full collection if Python would have done one by now: in an idle moment."""
    if gc.get_count()[2] >= DUE:
        gc.collect()
