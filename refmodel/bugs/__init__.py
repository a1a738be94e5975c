"""Bugs of real storage engines, to be planted in these engines by name. The kit has to find each.

A bug is a function of a disk that is about to recover. It replaces public methods of that one disk
and of its parts, so the engines themselves know nothing of bugs, and pay nothing for them. Numbers
and evidence are those of the list of bugs in docs/self-test.md.
"""

from refmodel.bugs import (
    cache,
    cleaning,
    deletion,
    in_place,
    increments,
    memory,
    overlap,
    recovery,
    redo_log,
    redundancy,
    snapshots,
    waiting,
)
from refmodel.bugs.registry import BUGS, Bug

__all__ = [
    "BUGS",
    "Bug",
    "cache",
    "cleaning",
    "deletion",
    "in_place",
    "increments",
    "memory",
    "overlap",
    "recovery",
    "redo_log",
    "redundancy",
    "snapshots",
    "waiting",
]
