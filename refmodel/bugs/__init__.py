"""Planted bugs: bugs that real storage engines had, and that the conformance kit must find.

A bug is a function that changes one disk before it recovers: it overrides a method or two of that
object. So the engines have no code for bugs, and no cost. Each bug has its number in the project's
list of bugs, and the evidence that a real engine had it.
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
