"""The choice of operations for a program: a random subset with random weights, or a theme.

Swarm testing (Groce et al., ISSTA 2012): programs that leave operations out reach states that an
even mixture of all operations does not. A scene is a sequence of operations that chance seldom
makes.
"""

from collections.abc import Mapping
from typing import Any

from conformance.contract.source import Source, rarely
from conformance.contract.trace import Trace

# operation -> the capability that it needs, None where every target has it
NEEDS = {
    "write": None,
    "read": None,
    "unmap": "unmap",
    "flush": "flush",
    "snapshot": "snapshot",
    "delete": "delete",
    "revert": "revert",
    "crash": "crash",
    "restart": "restart",
    "clean": "clean",
    "checkpoint": "clean",
    "scrub": "scrub",
    "fail": "device",
    "return": "device",
    "replace": "device",
    "tick": "device",
    "settle": "device",
}
OPENINGS = ("restart", "crash")
FUA = "fua"  # the capability of writes that are durable when they are answered
CAPABILITIES = sorted({FUA, *filter(None, NEEDS.values())})
IN_FLIGHT = "in_flight"  # no capability: a number in `hello`, which requests that overlap need
DEVICE_OPS = ("fail", "return", "replace", "tick", "settle")
# The operations that are sent while more devices have failed than the target tolerates.
BEYOND_TOLERANCE = ("read", "fail", "return", "tick", "settle", "crash")
# Swarms that a random choice seldom makes. In order: trees of views, twice; views that become a
# tree and lose branches; overwriting and cleaning; a disk that fills and empties; one with holes.
THEMES = (
    {"branch": 3, "write": 4, "unmap": 1, "look": 1, "clean": 1, "restart": 1},
    {"branch": 2, "write": 1},
    {"write": 6, "read": 2, "snapshot": 6, "delete": 4, "revert": 4, "checkpoint": 1, "look": 1},
    {"write": 12, "read": 4, "unmap": 1, "snapshot": 1, "clean": 4},
    {"write": 12, "unmap": 4, "snapshot": 2, "delete": 2, "flush": 1, "restart": 1},
    {"write": 8, "unmap": 8, "read": 6, "snapshot": 2, "delete": 1, "revert": 2, "checkpoint": 1},
)
# The same with devices. They come and go under load, or faster than they catch up; they are
# replaced while the disk is cleaned and the power fails; they are rebuilt; they fail again before
# they have caught up, or between two power cuts; or, after a recovery, other devices fail.
DEVICE_THEMES = (
    {
        "write": 10,
        "read": 4,
        "unmap": 1,
        "fail": 4,
        "return": 4,
        "settle": 2,
        "checkpoint": 2,
        "restart": 1,
    },
    {
        "write": 8,
        "read": 4,
        "fail": 3,
        "replace": 3,
        "tick": 2,
        "settle": 2,
        "clean": 2,
        "snapshot": 1,
        "delete": 1,
    },
    {"outage": 3, "write": 2, "read": 1, "snapshot": 1, "delete": 1, "clean": 1},
    {"rebuild": 8, "write": 2, "delete": 1, "replace": 3, "settle": 3},
    {"write": 6, "fail": 6, "return": 4, "replace": 3, "tick": 2, "restart": 2, "clean": 1},
    {"write": 6, "snapshot": 1, "fail": 4, "return": 3, "replace": 1, "settle": 1, "crash": 6},
    {"write": 8, "unmap": 1, "checkpoint": 1, "clean": 1, "crash": 4, "survive": 3},
)
CRASHES = (0, 1, 2, 3, 8)  # weights, in a program: a recovery soon after another sees its traces
# scene -> the capability that it needs. `look` reads every view, and so does the end of any scene.
# `brim` makes a little room and writes until none is left.
# `survive` takes away as many sound devices as are tolerated: the others must have all data.
SCENES = {
    "look": None,
    "branch": "delete",
    "rebuild": "device",
    "outage": "device",
    "survive": "device",
    "brim": None,
}
# A device is rebuilt while only snapshots hold some data; then as many fail as are tolerated.
REBUILD = (
    "write",
    "snapshot",
    "write",
    "checkpoint",
    "fail",
    "tick",
    "replace",
    "write",
    "settle",
    "fail",
    "fail",
)
OUTAGE = (
    "fail",
    "fail",
    "return",
    "return",
    "return",
    "replace",
    "settle",
    "checkpoint",
    "restart",
    "crash",
)
ROOM = ("delete", "delete", "unmap", "revert", "clean")  # these may make room
# Changes while a device has a fault. After a checkpoint all devices have what was written.
CHANGES = (
    *("write",) * 4,
    *("checkpoint",) * 3,
    "unmap",
    "snapshot",
    "delete",
    "clean",
    "restart",
    "crash",
)
STEPS = ("snapshot", "snapshot", "revert", "delete", "delete")  # steps that change a tree of views
BETWEEN = (
    (),
    (),
    (),
    ("settle",),
    ("settle",),
    ("clean",),
    ("checkpoint",),
    ("restart",),
    ("crash",),
)


def steps(choose: Source, scene: str) -> list[str]:
    """Return the operations of a scene. A target may lack the capabilities for some of them."""
    if scene == "rebuild":
        return list(REBUILD)
    if scene == "outage":
        return _outage(choose)
    if scene == "branch":
        return _branch(choose) if choose.randrange(2) else _walk(choose)
    return []


def _branch(choose: Source) -> list[str]:
    """Return a scene: a tree of views grows, and loses some of them, while the live disk is
    written. Writes come before, during and after the reclaim of what a deleted view held, or the
    deletions follow each other at once."""
    grown = [
        kind
        for _ in range(2 + choose.randrange(4))
        for kind in (
            *("revert",) * choose.randrange(2),
            *("write",) * choose.randrange(4),
            "snapshot",
        )
    ]
    if rarely(choose, 3):
        pruned = ["delete"] * (2 + choose.randrange(5))
    else:
        pruned = [
            kind
            for _ in range(1 + choose.randrange(4))
            for kind in (
                "delete",
                *BETWEEN[choose.randrange(len(BETWEEN))],
                *("write", "write", "unmap", "write", "write")[: choose.randrange(6)],
            )
        ]
    written = ["write"] * choose.randrange(4)
    return [*grown, *("revert",) * choose.randrange(2), *written, *pruned]


def _outage(choose: Source) -> list[str]:
    """Return a scene: devices come and go, mostly faster than they catch up, with few writes in
    between."""
    outage = ["write", "fail"]
    for _ in range(3 + choose.randrange(8)):
        outage += ["write"] * choose.randrange(3)
        outage.append(OUTAGE[choose.randrange(len(OUTAGE))])
    return [*outage, "settle"]


def _walk(choose: Source) -> list[str]:
    """Return a scene: a tree of views grows and loses views in turns, with few writes between."""
    walk, pace = ["write", "snapshot"], 1 + choose.randrange(3)
    for _ in range(6 + choose.randrange(18)):
        walk.append(STEPS[choose.randrange(len(STEPS))])
        walk += ["write"] * choose.randrange(pace)
        if rarely(choose, 4):
            walk += BETWEEN[choose.randrange(len(BETWEEN))]
    return walk


def kinds(choose: Source, capabilities: set[str], devices: bool, can_crash: bool) -> list[str]:
    """Return operations and scenes, each as often as its weight says: a theme, or at random."""
    themes = THEMES + DEVICE_THEMES if devices else THEMES
    theme = choose.randrange(len(themes) + 4)
    if theme < len(themes):
        weights = {
            kind: weight
            for kind, weight in themes[theme].items()
            if {**NEEDS, **SCENES}[kind] in {None, *capabilities}
        }
    else:
        weights = {"write": 4 + choose.randrange(13), "read": 1 + choose.randrange(7)}
        for kind, need in NEEDS.items():
            if need not in capabilities or kind in DEVICE_OPS and not devices or kind == "scrub":
                continue
            if choose.randrange(4):
                weights[kind] = (1, 2, 6)[choose.randrange(3)]
        weights["look"] = choose.randrange(3)
        if "delete" in capabilities:
            weights["branch"] = choose.randrange(3)
        if devices and "device" in capabilities:
            weights["outage"] = choose.randrange(3)
            weights["survive"] = choose.randrange(3)
    if can_crash:
        drawn = CRASHES[choose.randrange(len(CRASHES))]
        weights["crash"] = max(drawn, weights.get("crash", 0))
    if "scrub" in capabilities and rarely(choose, 4):
        weights["scrub"] = 1
    return [kind for kind, weight in weights.items() for _ in range(weight)]


def unasked(hello: Mapping[str, Any]) -> dict[str, str]:
    """Return the declared capabilities that no program can ask for, and why."""
    unknown = set(hello["capabilities"]).difference(CAPABILITIES)
    reasons = {name: "no such capability" for name in sorted(unknown)}
    if "device" in hello["capabilities"] and not hello.get("devices"):
        reasons["device"] = "hello does not say `devices` and `tolerates`"
    if "crash" in hello["capabilities"] and hello["crash_profile"] is None:
        reasons["crash"] = "the crash profile is null: nothing is promised"
    return reasons


def needs(trace: Trace) -> dict[str, str]:
    """Return what the operations of the trace need: operation -> capability. FUA stands for writes
    that are durable at once, IN_FLIGHT for requests that overlap."""
    found = {event["op"]: NEEDS.get(event["op"]) for event in trace.events}
    if any(event.get("fua") for event in trace.events):
        found[FUA] = FUA
    if trace.overlapping:
        found[IN_FLIGHT] = IN_FLIGHT
    return {op: need for op, need in found.items() if need is not None}


def lacking(trace: Trace, hello: Mapping[str, Any]) -> str:
    """Return the operations of the trace that a target with this hello is never asked for."""
    able = {IN_FLIGHT, *hello["capabilities"]}
    return ", ".join(op for op, need in needs(trace).items() if need not in able)
