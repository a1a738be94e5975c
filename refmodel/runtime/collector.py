"""Python's collector of cycles: a full collection goes on only in idle moments.

A full collection looks at every object of the process. With the nodes of a large disk in memory
this takes tens of milliseconds, at a moment that has nothing to do with any operation. It finds
nothing of the engine, which makes no cycles: what it drops, the reference counts free. Connections
and errors of a server may be in cycles, so collections are put off, not left out: young objects are
collected as usual, which is short, and the rest when nobody waits. A server that is never idle does
a full collection, too, but rarely.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 1000  # collections of young objects before Python does a full one by itself
DUE = 10  # such collections after which an idle moment is used, as Python would


@contextmanager
def full_collections_in_idle_moments() -> Iterator[None]:
    """Meanwhile `collect_if_due` does full collections, and Python by itself only rarely."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, RARELY)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


def collect_if_due() -> None:
    """Do a full collection if Python would have done one by now: in an idle moment."""
    if gc.get_count()[2] >= DUE:
        gc.collect()
