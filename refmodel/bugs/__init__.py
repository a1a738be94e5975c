"""Bugs that real storage engines had, to be planted in these by name: what a conformance kit has to find.

A bug is a function of a disk that is about to recover. It overrides a method or two of that one disk, so the engines themselves know
nothing of bugs and pay nothing for them. Numbers and evidence are those of the list of bugs that the project works through.
"""

from refmodel.bugs import cache, cleaning, in_place, recovery, redo_log, redundancy, snapshots
from refmodel.bugs.registry import BUGS, Bug

__all__ = [
    "BUGS",
    "Bug",
    "cache",
    "cleaning",
    "in_place",
    "recovery",
    "redo_log",
    "redundancy",
    "snapshots",
]
