"""Statistics of the operations that users asked of a disk: how many, how long, how large."""

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter_ns, time

from refmodel.core.breakdown import Breakdown
from refmodel.core.histogram import Histogram


class OperationStats:
    """Histograms of latency (nanoseconds) and length (blocks), by name of the operation; for
    a server, of the requests that it has together, and what each request waited for."""

    def __init__(self) -> None:
        self.since = time()  # when counting began, in seconds of Unix time
        self.nanoseconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.blocks: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.groups = Histogram()  # requests of a server's clients that were performed together
        self.in_flight = Histogram()  # requests that the server had taken when a group began
        self.requests: defaultdict[str, Breakdown] = defaultdict(
            Breakdown
        )  # requests of a server's clients

    def add(self, name: str, started: int, blocks: Sequence[int] = ()) -> None:
        """Count operations that began together at `started` (a perf_counter_ns) and end now.

        `blocks` has the length of each, in blocks; with none, one operation without a length is
        counted.
        """
        count = len(blocks)
        self.nanoseconds[name].add(perf_counter_ns() - started, count or 1)
        if count == 1:
            self.blocks[name].add(blocks[0])
            return
        for length in set(blocks):
            self.blocks[name].add(length, blocks.count(length))

    @property
    def changes(self) -> int:
        """Number of operations that may have changed the disk."""
        return sum(
            histogram.count for name, histogram in self.nanoseconds.items() if name != "read"
        )

    def blocks_of(self, name: str) -> int:
        """Return the number of blocks of all operations of a name together."""
        return self.blocks[name].total if name in self.blocks else 0
