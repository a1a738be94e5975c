"""Traces of the engine for the judges of inner events: a hand-written history of devices, generated
traces, and what they reach."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from conformance import targets
from conformance.campaign.driver import Bench
from conformance.contract.trace import Trace
from conformance.judging.oracles import inner
from conformance.programs import generate
from modelcheck.runs import reached
from refmodel.array.layout import LAYOUTS

BLOCKS = 16
OPTIONS = {
    "block_bytes": 512,
    "segment_blocks": 4,
    "fanout": 3,
    "capacity_percent": 400,
    "spares": 1,
}
SEED = 3  # of the generated traces
BURST_OPS = 60  # requests of a burst
IN_FLIGHT = 8  # requests in flight in a burst
HOT = 4  # blocks that most requests that overlap meet in
Request = dict[str, Any]


def history(layout: str) -> list[Request]:
    """Yield events of devices in turn: one returns, is rebuilt on a spare or in its place, across
    power cuts and restarts.
    """
    k, m = LAYOUTS[layout]
    spare, too_many = k + m, (0, 2, 3)[: m + 1]
    tags = iter(range(1, 1000))

    def write(lba: int, count: int = 1) -> Request:
        return {"op": "write", "lba": lba, "tags": [next(tags) for _ in range(count)]}

    def device(op: str, number: int, **more: str) -> Request:
        return {"op": op, "device": number, **more}

    def of_the_last() -> Iterator[Request]:
        """Yield a member that has no part in the performance leg: rebuilt on the spare, which is 1
        by now, and replaced there.
        """
        last = spare - 1
        yield from (device("fail", last, mode="degraded"), settle, device("replace", last))
        yield from (
            device("fail", last, mode="absent"),
            device("fail", 1, mode="degraded"),
            device("replace", 1),
        )
        yield from (write(2), settle, device("return", last), read, read | {"view": "s"})

    read, checkpoint, settle = (
        {"op": "read", "lba": 0, "count": BLOCKS},
        {"op": "checkpoint"},
        {"op": "settle"},
    )
    restart, crash = {"op": "restart"}, {"op": "crash"}
    return [
        {"op": "create", "blocks": BLOCKS},
        write(0, 6),
        {"op": "snapshot", "name": "s"},
        checkpoint,
        # Absent, and back: resynced.
        device("fail", 1, mode="absent"),
        write(2, 4),
        read,
        checkpoint,
        write(9),
        device("return", 1),
        read,
        write(1, 3),
        settle,
        read,
        # Degraded: rebuilt on the spare at once, across a power cut.
        device("fail", 0, mode="degraded"),
        write(0, 2),
        read,
        crash,
        read,
        write(3),
        settle,
        read,
        # Absent for too long; what takes its place is a new device, and it is a spare when it comes
        # back.
        device("replace", 0),
        device("fail", 1, mode="absent"),
        {"op": "tick", "seconds": 3000},
        write(5),
        restart,
        {"op": "tick", "seconds": 600},
        write(6),
        write(7),
        settle,
        device("return", 1),
        read,
        # The spare fails, then a member: replaced where it was.
        device("fail", 1, mode="absent"),
        device("fail", 0, mode="absent"),
        write(8),
        device("fail", 0, mode="degraded"),
        restart,
        # The power fails when the replacement is on record and is not answered.
        device("replace", 0) | {"cut": {"after": 4, "seed": 1}},
        crash,
        device("fail", 0, mode="degraded"),
        device("replace", 0),
        read,
        write(10),
        settle,
        {"op": "tick", "seconds": 60},
        device("fail", spare, mode="absent"),
        write(11),
        device("replace", spare),
        write(12),
        settle,
        # Gone while it is resynced, and twice while the disk is closed.
        device("fail", 0, mode="absent"),
        write(0, 8),
        checkpoint,
        device("return", 0),
        write(1),
        write(2),
        device("fail", 0, mode="absent"),
        write(3),
        restart,
        crash,
        device("return", 0),
        restart,
        write(4),
        settle,
        device("return", 1),
        read,
        # Beyond what the layout tolerates, and back.
        *(device("fail", number, mode="absent") for number in too_many),
        read,
        *(device("return", number) for number in too_many),
        settle,
        read,
        # The same, and the power fails: that the last is degraded was not put on record.
        *(device("fail", number, mode="absent") for number in too_many[:-1]),
        device("fail", too_many[-1], mode="degraded"),
        read,
        crash,
        *(device("return", number) for number in too_many),
        settle,
        read,
        *(of_the_last() if k > 1 else ()),
    ]


def histories(target: str = "refmodel") -> Iterator[Trace]:
    """Yield the history on every layout."""
    for number, layout in enumerate(LAYOUTS):
        bench = Bench(targets.resolve(target))
        try:
            yield bench.drive(history(layout), number, OPTIONS | {"layout": layout})
        finally:
            bench.clear()


def generated(target: str, count: int, *, ops: int = 30) -> list[Trace]:
    """Return `count` traces of a target, generated as a campaign does."""
    factory = targets.resolve(target)
    bench = Bench(factory)
    try:
        drawn = islice(generate.cases(factory.draw, bench.hello, ops, SEED, cuts=True), count)
        return [
            bench.drive(program, number, options) for number, (options, program) in enumerate(drawn)
        ]
    finally:
        bench.clear()


def bursts(seed: int) -> Iterator[Request]:
    """Yield a program whose requests overlap: on a few blocks, with snapshots and power cuts."""
    choose = random.Random(seed)
    yield {"op": "create", "blocks": BLOCKS}
    for tag in range(1, BURST_OPS + 1):
        op = choose.choice(
            ("write", "write", "write", "read", "unmap", "flush", "snapshot", "other")
        )
        lba, count, name = choose.randrange(HOT), choose.randint(1, 3), choose.choice("ab")
        request: Request = {"op": op}
        match op:
            case "write":
                request |= {"lba": lba, "tags": [10 * tag + at for at in range(count)]}
            case "read" | "unmap":
                request |= {"lba": lba, "count": count}
                if op == "read" and choose.random() < 0.3:
                    request["view"] = name
            case "snapshot":
                request |= {"name": name}
            case "other":
                request = {"op": choose.choice(("delete", "revert")), "name": name}
        request |= {"overlaps": IN_FLIGHT - 1, "schedule": choose.getrandbits(48)}
        if choose.random() < 0.03:
            request["cut"] = {"after": choose.randint(1, 6), "seed": seed}
        yield request
        if tag % 20 == 0:
            yield {"op": choose.choice(("crash", "restart", "checkpoint", "clean")), "overlaps": 0}


def overlapping(target: str, seeds: Sequence[int], **options: Any) -> list[Trace]:
    """Return traces of bursts on a target, one for each seed, with these further options."""
    bench = Bench(targets.resolve(target))
    try:
        return [bench.drive([*bursts(seed)], seed, OPTIONS | options, tells=True) for seed in seeds]
    finally:
        bench.clear()


def statements(count: int = 120) -> Iterator[reached.Coverage]:
    """Yield what generated traces and the histories reach of the modules that judge inner events.

    Raises as reached.coverage does.
    """
    batches: defaultdict[tuple[str, str], list[Sequence[Mapping[str, Any]]]] = defaultdict(list)
    followed = [*histories(), *generated("refmodel:log-structured", count)]
    for write_back in (False, True):
        followed += overlapping("refmodel", range(8), write_back=write_back)
    for trace in followed:
        for spec, config, lines, _ in inner.followings(trace):
            if spec in ("SharedTree", "MirroredLog"):  # constants are not to be instrumented
                continue
            batches[spec, config].append(lines)
    for spec in dict.fromkeys(spec for spec, _ in batches):
        yield reached.coverage(
            [(config, some) for (of, config), some in batches.items() if of == spec],
            f"Trace{spec}",
            spec,
        )
