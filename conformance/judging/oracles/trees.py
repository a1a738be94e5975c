"""The lines of a trace for specs/TraceSharedTree.tla: what became of the trees of the views."""

from collections.abc import Iterator

from conformance.contract.trace import Event, Trace
from conformance.judging.oracles.legs import Line, Place

LARGEST_TREES = 300  # pages of a disk that are followed: TLC takes their square in time
EVENTS = frozenset(("tree", "checkpoint_commit"))
CLAUSES = {  # action -> what it has to be, in the words of specs/SharedTree.tla
    "merge": "Write, Unmap: a node is copied if a snapshot or a checkpoint has it, its page was "
    "free, and what no view holds any more is freed",
    "snapshot": "Snapshot: a root, and no node",
    "delete": "Delete: no node is touched",
    "revert": "Revert: the root of a snapshot, and no node",
    "reclaim": "Reclaim: what is freed is exactly what no other view holds",
    "freeze": "Checkpoint: it has every view, and what is left to reclaim",
    "load": "Crash: the trees, the views and the cursor are those of the newest checkpoint",
}


def lines(trace: Trace) -> Iterator[tuple[list[Line], list[Place]]]:
    """Yield a header, the events, and where each is from; nothing if the trace tells of no trees,
    or of too large ones.

    They end where a page could not be read from any device.
    """
    found = list(_events(trace))
    told = [line for line, _ in found if line["event"] == "tree"]
    pages = {page for line in told for page in _pages(line)}
    if told and len(pages) <= LARGEST_TREES:
        header = {"trace": 1, "pages": sorted(pages)}
        yield [header, *(line for line, _ in found)], [place for _, place in found]


def _events(trace: Trace) -> Iterator[tuple[Line, Place]]:
    for index, event in enumerate(trace.events):
        if "failure" in event:
            return
        for number, inside in enumerate(event.get("events", ())):
            if inside.get("action") == "damaged":
                return
            if inside["event"] in EVENTS:
                yield inside, (index, number)


def _pages(line: Event) -> Iterator[int]:
    yield from (node[0] for node in line["nodes"])
    yield from line["freed"]
    yield from line["others"]
    yield from line["left"]
    yield from line.get("held", ())
