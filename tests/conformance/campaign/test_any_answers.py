"""Whatever a target answers, the campaign goes on to a verdict in words: never a traceback."""

import io
import json
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance.campaign.driver import Bench
from conformance.campaign.random_campaign import campaign
from conformance.contract import trace as traces
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.programs import generate, overlap, swarm, woven
from conformance.programs.explored import Explored
from conformance.reports import folder, machine, terminal
from conformance.targets import Factory
from conformance.targets.base import Message, PowerCut, TargetFailure
from conformance.targets.model import ModelTarget

MODEL = {"model": named("model")}
CODES = (
    "out-of-range",
    "no-such-snapshot",
    "snapshot-exists",
    "no-space",
    "data-lost",
    "unsupported",
    "bad-request",
    "unknown-outcome",
)
NONSENSE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2.0,
    2.5,
    10**400,
    float("nan"),
    "",
    "half \ud800",
    "\n\x1b[31m",
    [],
    [None],
    {"a": 1},
    b"x",
    [{"event": 3}],
    [{"event": "write"}],
    [{"event": "checkpoint", "left": [1]}],
)
FIELDS = (
    *("ok", "error", "message", "tags", "found", "counters", "problems", "holds"),
    *("events", "left", "id", "data", "extra"),
)
OF_HELLO = (
    *("block_size", "crash_profile", "capabilities", "devices", "tolerates", "in_flight"),
    *("atomic", "protocol", "name", "version", "payload", "holds", "extra"),
)
OVERLAPPING = ("read", "write", "unmap", "flush", "snapshot", "delete", "revert")


def babbling(seed: int) -> Callable[[dict[str, Any]], ModelTarget]:
    """Return a target that answers as the contract says, except for some answers that are not
    valid."""

    class Babbling(ModelTarget):
        def __init__(self, options: dict[str, Any]) -> None:
            super().__init__(options)
            self._luck = luck = random.Random(seed)
            self._rate = luck.choice([0.002, 0.01, 0.05, 0.3])
            if luck.random() < 0.3:
                self.hello = {**self.hello, luck.choice(OF_HELLO): luck.choice(NONSENSE)}

        def request(self, message: Message) -> Message:
            response, luck = super().request(message), self._luck
            if luck.random() > self._rate:
                return response
            match luck.randrange(8):
                case 0:
                    events: Any = luck.choice([(), [1], [{}]])
                    raise PowerCut(events)
                case 1:
                    raise luck.choice([KeyError("x"), RuntimeError("a\nb"), RecursionError()])
                case 2:
                    raise TargetFailure("exit", "half \ud800", "\x00")
                case 3:
                    return luck.choice(NONSENSE)
            return {**response, luck.choice(FIELDS): luck.choice(NONSENSE)}

    return Babbling


class Dice:
    """Answers by chance, in the words of the dialogue, and cuts the power by chance."""

    cuts = True

    def __init__(self, options: dict[str, Any]) -> None:
        self._luck = luck = random.Random(options["seed"])
        some = luck.sample(swarm.CAPABILITIES, luck.randrange(len(swarm.CAPABILITIES) + 1))
        self.hello: Message = {
            "ok": True,
            "block_size": 512,
            "payload": "tags",
            "crash_profile": luck.choice(["ack", "prefix", "block", None]),
            "capabilities": luck.choice([some, swarm.CAPABILITIES]),
            "devices": luck.randrange(5),
            "tolerates": luck.randrange(4),
            "protocol": 2,
            "in_flight": luck.choice([1, 4, 8]),
            "atomic": luck.choice(["request", "block"]),
            "holds": luck.choice([0, 5, 1000]),
        }
        self._granted, self._cut = luck.choice([0.5, 0.9, 0.97]), luck.choice([0, 0.3, 1])

    def request(self, message: Message) -> Message:
        luck, op = self._luck, message["op"]
        if op == "create":
            return {"ok": True}
        if "cut" in message and luck.random() < self._cut:
            raise PowerCut([{"event": "x"}])
        if luck.random() > self._granted:
            return {"ok": False, "error": luck.choice(CODES)}
        if op == "read":
            return {"ok": True, "tags": [luck.choice([0, 1, -1]) for _ in range(message["count"])]}
        if op == "scrub":
            return {"ok": True, "problems": luck.choice([[], ["x"]])}
        return {"ok": True}

    def close(self) -> None:
        pass


class ManyDice(Dice):
    """The same with several requests in flight, answered in any order."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._waiting: list[tuple[Message, Callable[[Message], None]]] = []

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        if message["op"] in OVERLAPPING:
            self._waiting.append((message, done))
        else:
            self._waiting.clear()
            done(self.request(message))

    def step(self) -> bool:
        if self._waiting:
            message, done = self._waiting.pop(self._luck.randrange(len(self._waiting)))
            done(self.request(message))
            return True
        return False


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_answers_that_are_none_are_failures_in_one_line(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        factory = Factory("babbling", babbling(seed), knobs={"seed": [1, 2]})
        result = campaign(factory, count=8, ops=20, seed=seed, oracles=MODEL)
        assert "\n" not in result.reason and "Traceback" not in result.reason
        terminal.show(result, Console(file=io.StringIO()), None)
        json.dumps(machine.as_json(result))
        machine.as_junit(result)
        folder.save(result, tmp_path / str(seed))
        for failure in result.failures:
            assert "\n" not in failure.verdict.actual
            traces.write(failure.trace, tmp_path / "failure.jsonl")
            again = traces.read(tmp_path / "failure.jsonl")
            assert judge([again], MODEL)[0].kind == failure.verdict.kind


@pytest.mark.parametrize("kind", [Dice, ManyDice])
@pytest.mark.parametrize("first", range(0, 24, 8))
def test_answers_by_chance_are_judged_and_generation_goes_on(kind: type, first: int) -> None:
    for seed in range(first, first + 8):
        bench, options, explored = Bench(Factory("dice", kind)), {"seed": seed}, Explored()
        hello = bench.hello(options)
        cases = generate.cases(
            lambda _, seed=seed: {"seed": seed},  # type: ignore[misc]
            bench.hello,
            25,
            seed,
            cuts=True,
            long=True,
            lives=True,
            explored=explored,
        )
        for number, (_, program) in enumerate(islice(cases, 8)):
            luck, most = random.Random(number), hello["in_flight"]
            if kind is ManyDice and most > 1 and number % 2:
                weave = number % 4 == 1
                program = (
                    woven.woven(luck, program, most)
                    if weave
                    else overlap.written(luck, hello, 40, most, cuts=True)
                )
            trace = bench.drive(program, seed, options)
            verdict = judge([trace], MODEL)[0]
            assert verdict.words(trace) and traces.numbered(trace.events)
            explored.learn(trace)
