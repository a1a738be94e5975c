"""A model of the nodes that an operation has to load when memory holds only some of them.

The page store forgets nodes as CLOCK does: in turn, but not those that were used since their last
turn. Let a turn take T operations, and let an operation use a node with probability p. A node that
was just loaded stays for one turn, and for one more each time that it was used in the last one. So
it stays e^(pT) turns on average, and is away for 1/p operations. It is in memory when it is used
with probability h = pT e^(pT) / (1 + pT e^(pT)). T follows from the size of the memory: the sum of
h over all nodes is the number of nodes that fit. Where all nodes are used alike, h is simply the
share of the nodes that fit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from refmodel.log_structured.maps.cow_btree import Tree

MOST = 40.0  # largest pT: h is 1 there within the precision of a float


def expected_misses(rates: Sequence[float], fit: int) -> float:
    """Return how many nodes an operation loads on average, if only `fit` of them fit in memory.

    `rates` gives for each node the probability that an operation uses it.
    """
    if fit >= len(rates):
        return 0.0
    low, high = 0.0, 1.0
    while sum(_held(rate * high) for rate in rates) < fit:
        low, high = high, 2 * high
    for _ in range(60):
        turn = (low + high) / 2
        if sum(_held(rate * turn) for rate in rates) < fit:
            low = turn
        else:
            high = turn
    return sum(rate * (1 - _held(rate * low)) for rate in rates)


def node_rates(tree: Tree[Any], rate: Callable[[int], float]) -> list[float]:
    """Return for each node of a tree how often it is used, if each key is at a given rate.

    It reads the whole tree. Raises DataLost.
    """
    found: list[float] = []

    def walk(page: int) -> float:
        node = tree.pages.get(page, tree.kind)
        below = map(walk, node.values) if node.level else map(rate, node.keys)
        found.append(sum(below))
        return found[-1]

    if tree.root:
        walk(tree.root)
    return found


def _held(used: float) -> float:
    """Return the probability that a node is in memory; `used` is how often in a turn it is used."""
    if used > MOST:
        return 1.0
    stays = used * math.exp(used)
    return stays / (1 + stays)
