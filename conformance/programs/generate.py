"""Hypothesis strategies for what a target is asked: a program, which is a flat list of requests.

Each program is a swarm of its own (conformance.programs.swarm), on a small disk with hot spots. Any subsequence of a program
that keeps `create` is a program, so that shrinking may drop anything.

Hypothesis draws one string of bytes a case, three for each operation, which seed all that is random in it. More
draws would cost more time, and Hypothesis would make variants of few cases rather than many cases.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

import hypothesis
from hypothesis import strategies as st

from conformance.programs import swarm
from conformance.programs.swarm import BEYOND_TOLERANCE, NEEDS, SCENES

Request = dict[str, Any]

CUTTABLE = (
    "write",
    "unmap",
    "flush",
    "snapshot",
    "delete",
    "revert",
    "restart",
    "clean",
    "checkpoint",
)
SIZES = (4, 4, 5, 8, 8, 16, 32, 64)  # blocks
NAMES = ("s1", "s2", "s3", "s4", "..", "-", "n" * 64, "a.b_c-D9")
BAD_NAMES = ("", "a b", "n" * 65, "s/1", "naïve", "s1\n", "*", "\x00")
CUT_AFTER = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)  # device writes
LEFT_OUT = 11  # one step of a scene in so many
STEERED = 3  # one request in so many goes where nothing was before, if it can
BATCH = 50  # examples that Hypothesis draws at a time
SEED = 3  # bytes that each operation is made from
MOST_OPS = 2000  # Hypothesis draws at most 8 KiB an example


def seeds(ops: int) -> st.SearchStrategy[list[int]]:
    """What a program of about `ops` operations is made from: see written."""
    length = SEED * (ops + 2)
    return st.binary(min_size=length, max_size=length).map(
        lambda drawn: [int.from_bytes(drawn[at : at + SEED]) for at in range(0, length, SEED)]
    )


def written(
    seeds: list[int],
    knobs: dict[str, list[Any]],
    hello_of: Callable[[dict[str, Any]], dict[str, Any]],
    crashes: bool = True,
    cuts: bool = False,
    pairs: Mapping[Any, int] = MappingProxyType({}),
) -> tuple[dict[str, Any], list[Request]]:
    """Creation options, one of each of the `knobs`, and a program for such a target.

    `hello_of` tells what a target with these options says. `crashes` False leaves crashes out; `cuts` cuts the
    power in the middle of operations too. `pairs` are the consecutive outcomes so far: what is not among them is sought."""
    choose = random.Random(seeds[0])
    options = {name: choose.choice(values) for name, values in sorted(knobs.items())}
    return options, _Writer(
        seeds[1:], hello_of(options), crashes, cuts, pairs, options.values()
    ).program()


def cases(
    knobs: dict[str, list[Any]],
    hello_of: Callable[[dict[str, Any]], dict[str, Any]],
    ops: int,
    crashes: bool = True,
    cuts: bool = False,
) -> st.SearchStrategy[tuple[dict[str, Any], list[Request]]]:
    """What `written` makes of seeds."""
    return seeds(ops).map(lambda drawn: written(drawn, knobs, hello_of, crashes, cuts))


def programs(
    hello: dict[str, Any], ops: int, crashes: bool = True, cuts: bool = False
) -> st.SearchStrategy[list[Request]]:
    """As cases, for a target that says `hello` and has no knobs: the program alone."""
    return cases({}, lambda options: hello, ops, crashes, cuts).map(lambda case: case[1])


def drawn(
    strategy: st.SearchStrategy[Any], seed: int, batch: int = BATCH, first: int = 0
) -> Iterator[Any]:
    """Examples of the strategy without end, `batch` at a time; the same seed, batch and `first` batch give the same ones."""
    settings = hypothesis.settings(
        max_examples=batch,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    for part in count((seed << 20) + first):
        yield from _batch(strategy, settings, part)


def _batch(strategy: st.SearchStrategy[Any], settings: hypothesis.settings, seed: int) -> list[Any]:
    examples: list[Any] = []

    def collect(example: Any) -> None:
        examples.append(example)

    hypothesis.seed(seed)(settings(hypothesis.given(strategy)(collect)))()
    return examples


class _Writer:
    """Writes one program; it keeps track of what would exist if every request were granted."""

    def __init__(
        self,
        seeds: list[int],
        hello: dict[str, Any],
        crashes: bool,
        cuts: bool,
        pairs: Mapping[Any, int],
        options: Iterable[Any],
    ):
        self._random, self._seeds, self._tag = random.Random(seeds[0]), seeds[1:], 0
        capabilities = set(hello["capabilities"])
        if not crashes or hello["crash_profile"] is None:
            capabilities.discard("crash")
        self._can_crash = "crash" in capabilities
        self._has_views = "snapshot" in capabilities
        self._cuts = cuts and self._can_crash
        self._devices, self._tolerates = hello.get("devices", 0), hello.get("tolerates", 0)
        self._failed: dict[
            int, str
        ] = {}  # device -> absent, degraded, or back, which lasts until it settles
        self._blocks = self._one_of(SIZES)
        self._edges = _edges(options, hello.get("block_size", 1), self._blocks)
        self._hot = [self._upto(self._blocks - 1) for _ in range(2)]
        self._names = NAMES[self._upto(2) :][: 1 + self._upto(3)]
        self._taken: list[str] = []
        self._capabilities = capabilities
        self._kinds = swarm.kinds(self._random, capabilities, self._devices > 0, self._can_crash)
        self._seen = {(first[0], second[0]) for first, second in pairs}
        self._requests: list[Request] = [{"op": "create", "blocks": self._blocks}]

    def program(self) -> list[Request]:
        for number, seed in enumerate(self._seeds):
            if len(self._requests) > len(self._seeds):
                break
            self._random = random.Random(number << 8 * SEED | seed)
            kind = self._next()
            if kind in SCENES:
                self._play(SCENES[kind])
            else:
                self._add(kind)
        self._read_back()
        return self._requests

    def _next(self) -> str:
        """The kind of the next request: of the swarm's, by weight; now and then one that never came after the last one."""
        last = self._requests[-1]["op"]
        new = [
            kind
            for kind in dict.fromkeys(self._kinds)
            if kind in NEEDS and (last, kind) not in self._seen
        ]
        if self._seen and new and not self._upto(STEERED - 1):
            return self._one_of(new)
        return self._one_of(self._kinds)

    def _play(self, scene: tuple[str, ...]) -> None:
        """A scene, now and then without a step; what came of it is read back."""
        for kind in scene:
            if NEEDS[kind] in {None, *self._capabilities} and self._upto(LEFT_OUT):
                self._add(kind)
        self._read_back()

    def _add(self, kind: str) -> None:
        if len(self._failed) > self._tolerates and kind not in BEYOND_TOLERANCE:
            return
        request = getattr(self, "_" + kind, dict)()
        if request is None:
            return
        request = {"op": kind, **request}
        if self._cuts and kind in CUTTABLE and not self._upto(5):
            self._requests.append({**request, "cut": self._cut()})
            kind = "crash"
            request = {"op": kind}
        if kind != "crash":
            self._requests.append(request)
            return
        while self._cuts and not self._upto(3):
            self._requests.append({"op": "crash", "cut": self._cut(CUT_AFTER[:6])})
        self._requests.append({"op": "crash"})
        self._read_back()

    def _cut(self, after: tuple[int, ...] = CUT_AFTER) -> dict[str, int]:
        return {"after": self._one_of(after), "seed": self._upto(255)}

    def _read_back(self) -> None:
        views: list[dict[str, str]] = [{}, *({"view": name} for name in self._taken)]
        self._requests += [
            {"op": "read", "lba": 0, "count": self._blocks, **view} for view in views
        ]

    def _write(self) -> Request:
        lba, count = self._range()
        tags = []
        for _ in range(count):
            repeated = self._tag and not self._upto(31)
            if not repeated:
                self._tag += 1
            tags.append(1 + self._upto(self._tag - 1) if repeated else self._tag)
        return {"lba": lba, "tags": tags}

    def _unmap(self) -> Request:
        lba, count = self._range()
        return {"lba": lba, "count": count}

    def _read(self) -> Request:
        lba, count = self._range()
        view = self._upto(1) and self._has_views
        return {"lba": lba, "count": count, **({"view": self._name(self._taken)} if view else {})}

    def _snapshot(self) -> Request:
        name = self._name([name for name in self._names if name not in self._taken])
        if name in self._names and name not in self._taken:
            self._taken.append(name)
        return {"name": name}

    def _delete(self) -> Request | None:
        if not self._taken and self._upto(3):
            return None
        name = self._name(self._taken)
        if name in self._taken:
            self._taken.remove(name)
        return {"name": name}

    def _revert(self) -> Request | None:
        if not self._taken and self._upto(3):
            return None
        return {"name": self._name(self._taken)}

    def _fail(self) -> Request | None:
        sound = [device for device in range(self._devices) if device not in self._failed]
        too_many = len(self._failed) >= self._tolerates
        if not sound or (too_many and self._upto(11)):  # now and then one too many
            return None
        device, mode = self._one_of(sound), self._one_of(("absent", "degraded"))
        self._failed[device] = mode
        return {"device": device, "mode": mode}

    def _return(self) -> Request | None:
        return self._brought_back(
            [device for device, mode in self._failed.items() if mode == "absent"]
        )

    def _replace(self) -> Request | None:
        return self._brought_back(
            [device for device, mode in self._failed.items() if mode != "back"]
        )

    def _brought_back(self, devices: list[int]) -> Request | None:
        if not devices:
            return None
        device = self._one_of(devices)
        self._failed[device] = "back"
        return {"device": device}

    def _settle(self) -> Request | None:
        if len(self._failed) > self._tolerates and set(self._failed.values()) != {"back"}:
            return None
        self._failed = {device: mode for device, mode in self._failed.items() if mode != "back"}
        return {}

    def _tick(self) -> Request:
        return {"seconds": self._one_of((60, 3599, 3600, 7200))}

    def _range(self) -> tuple[int, int]:
        """An LBA and a count: mostly short, often hot, at an edge of a structure, now and then past the end."""
        count = (1, 1, 1, 2, 2, 3, 4, self._blocks)[self._upto(7)]
        place = self._upto(15)
        if place == 0:
            count = max(2, min(count, self._blocks))
            return (self._blocks - 1, self._blocks - count + 1, self._blocks, 1 << 32)[
                self._upto(3)
            ], count
        count = min(count, self._blocks)
        if self._edges and not self._upto(3):  # where a structure of the engine's begins or ends
            edge = self._one_of(self._edges)
            count = (count, edge - 1, edge, edge + 1)[self._upto(3)]
            lba = edge * self._upto(self._blocks // edge) - self._upto(1)
            count = max(1, min(count, self._blocks))
            return max(0, min(lba, self._blocks - count)), count
        lba = self._hot[place & 1] if place < 8 else self._upto(self._blocks - 1)
        return min(lba, self._blocks - count), count

    def _name(self, fitting: list[str]) -> str:
        """One of the fitting names; now and then, or if there is none, any other, or a bad one."""
        luck = self._upto(15)
        if luck == 0:
            return self._one_of(BAD_NAMES)
        return self._one_of(fitting if fitting and luck > 1 else self._names)

    def _upto(self, most: int) -> int:
        return self._random.randrange(most + 1)

    def _one_of(self, values: Any) -> Any:
        return values[self._random.randrange(len(values))]


def _edges(options: Iterable[Any], block_size: int, blocks: int) -> list[int]:
    """In blocks, sizes that structures of the engine may have: numbers among its options, which are in blocks or in bytes."""
    numbers = [value for value in options if type(value) is int]
    sizes = {*numbers, *(number // block_size for number in numbers)}
    return sorted(size for size in sizes if 1 < size <= blocks)
