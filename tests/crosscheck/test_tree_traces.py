"""The trees of the engine, followed by TLC through SharedTree: honest programs, planted bugs, and
changed events.
"""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.oracles import inner, trees
from modelcheck.runs import traces

OPTIONS = {
    "block_bytes": 512,
    "segment_blocks": 4,
    "fanout": 3,
    "capacity_percent": 400,
    "layout": "mirror",
}
BLOCKS = 16
BUGS = {  # seeds of programs, one of which has to show it
    "freed-page-reused-early": (0,),
    "siblings-not-asked": (2,),
    "reclaim-forgets-progress": (2, 3),
    "deleted-view-unmarked": (0, 1),
    "delete-loses-chain": (1, 2),
    "unmap-in-shared-leaf": (0, 1),
}
Line = dict[str, Any]


def program(seed: int, operations: int = 60) -> Iterator[Line]:
    """Requests that make trees of views, and then reclaim them, with power cuts between."""
    draw, tag, taken = random.Random(seed), 0, 0
    names: list[str] = []
    yield {"op": "create", "blocks": BLOCKS}
    for _ in range(operations):
        kind = draw.random()
        if kind < 0.5:
            count = draw.randint(1, 4)
            lba = draw.randrange(BLOCKS - count + 1)
            yield {"op": "write", "lba": lba, "tags": list(range(tag + 1, tag + count + 1))}
            tag += count
        elif kind < 0.58:
            yield {"op": "unmap", "lba": draw.randrange(BLOCKS - 4), "count": draw.randint(1, 4)}
        elif kind < 0.72 and len(names) < 3:
            taken += 1
            names.append(f"s{taken}")
            yield {"op": "snapshot", "name": names[-1]}
        elif kind < 0.82 and names:
            yield {"op": "revert", "name": draw.choice(names)}
        elif kind < 0.9 and names:
            yield {"op": "delete", "name": names.pop(draw.randrange(len(names)))}
        elif kind < 0.95:
            yield {"op": "checkpoint"}
        else:
            yield {"op": draw.choice(["crash", "restart"])}
    yield from ({"op": "crash"}, {"op": "settle"})


def driven(target: str, seeds: tuple[int, ...], **more: int) -> list[Trace]:
    bench = Bench(targets.resolve(target))
    try:
        return [bench.drive(list(program(seed)), seed, OPTIONS | more) for seed in seeds]
    finally:
        bench.clear()


def rejected(batch: list[Trace]) -> list[Line | None]:
    """Return the first line of each trace that TraceSharedTree does not allow."""
    lines = [lines for trace in batch for lines, _ in trees.lines(trace)]
    assert len(lines) == len(batch)
    matched = traces.follow(lines, "TraceSharedTree", "TraceSharedTree")
    return [
        some[count + 1] if count < len(some) - 1 else None
        for some, count in zip(lines, matched, strict=True)
    ]


@pytest.fixture(scope="module")
def honest() -> list[Trace]:
    return driven("refmodel:log-structured", (0, 1, 2)) + driven(
        "refmodel:log-structured", (2,), memory=0
    )


def tree(trace: Trace, of: Callable[[Line], bool]) -> Line:
    """Return the first event `tree` for which the condition holds."""
    return next(
        inside
        for operation in trace.events
        for inside in operation.get("events", ())
        if inside["event"] == "tree" and of(inside)
    )


def page_kept(trace: Trace) -> None:
    tree(trace, lambda line: line["freed"])["freed"].pop()


def page_taken_too_early(trace: Trace) -> None:
    """Overwrite a node of a checkpoint."""
    root = tree(trace, lambda line: line["action"] == "freeze" and line["nodes"])["nodes"][0]
    later = tree(trace, lambda line: line["action"] == "snapshot")
    later["nodes"] = [[root[0], root[1], root[2], root[3], [5]]]


def cursor_forgotten(trace: Trace) -> None:
    for view in tree(trace, lambda line: any(v["cursor"] for v in line["views"]))["views"]:
        view["cursor"] = 0


def parent_forgotten(trace: Trace) -> None:
    for view in tree(trace, lambda line: any(v["parent"] for v in line["views"]))["views"]:
        view["parent"] = 0


def snapshot_of_nothing(trace: Trace) -> None:
    line = tree(trace, lambda line: any(v["name"] and v["root"] for v in line["views"]))
    next(view for view in line["views"] if view["name"] and view["root"])["root"] = 0


def page_lost_at_load(trace: Trace) -> None:
    tree(trace, lambda line: line.get("held", ()))["held"].pop()


CHANGES = [
    page_kept,
    page_taken_too_early,
    cursor_forgotten,
    parent_forgotten,
    snapshot_of_nothing,
    page_lost_at_load,
]


def test_the_trees_of_the_engine_keep_the_rules(honest: list[Trace]) -> None:
    assert rejected(honest) == [None] * len(honest)


def test_changed_events_break_them(honest: list[Trace]) -> None:
    changed = [copy.deepcopy(honest[2]) for _ in CHANGES]
    for trace, change in zip(changed, CHANGES, strict=True):
        change(trace)
    kept = [change for change, line in zip(CHANGES, rejected(changed), strict=True) if line is None]
    assert kept == []


def test_planted_bugs_of_the_trees_are_found() -> None:
    batch = {bug: driven(f"refmodel:plant={bug}", seeds) for bug, seeds in BUGS.items()}
    lines = iter(rejected([trace for some in batch.values() for trace in some]))
    found = {bug for bug, some in batch.items() for _ in some if next(lines) is not None}
    assert found == set(BUGS)


def test_a_verdict_names_the_action(honest: list[Trace]) -> None:
    trace = copy.deepcopy(honest[2])
    parent_forgotten(trace)
    opinion = inner.judge([trace])[0]
    assert opinion.inside.startswith("specs/SharedTree.tla: event")
    assert "Snapshot: a root, and no node" in opinion.inside
