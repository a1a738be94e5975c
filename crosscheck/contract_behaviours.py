"""The contract's behaviours on a small disk, as TLC prints them: the allowed answers to each
request, and the state after each."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from modelcheck.checkers import tlc, values

LIVE = "(live)"
SPLIT = ", <<[op |-> "  # in what TLC prints of a step, between the state and the request

Request = dict[str, Any]


@dataclass
class Contract:
    """The steps of specs/MCVirtualDiskSteps.tla under one crash profile."""

    profile: str
    states: dict[str, int] = field(
        default_factory=dict
    )  # a state, written short -> its number; 0 is the first
    steps: dict[tuple[int, str], dict[str, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    # (state, request) -> answer, with the data of a read -> the states that it may leave

    def requests(self) -> list[Request]:
        """Return the requests that are tried on the disk, in a fixed order."""
        return [json.loads(request) for state, request in sorted(self.steps) if state == 0]

    def outcomes(self) -> set[tuple[str, str]]:
        """Return every operation with every answer that the contract gives."""
        return {
            (json.loads(request)["op"], answer.split()[0])
            for (_, request), answers in self.steps.items()
            for answer in answers
        }

    def follow(self, events: Sequence[dict[str, Any]]) -> tuple[int, list[str]] | None:
        """Return the first of the events, after `create`, that the contract does not allow, and the
        answers that it allows to it.

        None if it allows all.
        """
        states = {0}
        for at, event in enumerate(events):
            request = _key(
                {
                    name: value
                    for name, value in event.items()
                    if name not in ("result", "events", "cut")
                }
            )
            steps = [self.steps.get((state, request), {}) for state in states]
            states = {
                after for answers in steps for after in answers.get(answered(event["result"]), ())
            }
            if not states:
                return at, sorted({answer for answers in steps for answer in answers})
        return None


def answered(result: dict[str, Any] | None) -> str:
    """Return an answer as in the steps: "ok", "ok [1, 0]" of a read, an error code, or "cut"."""
    if result is None:
        return "cut"
    if not result["ok"]:
        return str(result["error"])
    return f"ok {result['tags']}" if "tags" in result else "ok"


def load(profile: str) -> Contract:
    """Have TLC print the steps. Raises tlc.Unavailable, and ValueError where the module is
    broken.
    """
    name = f"MCVirtualDiskSteps-{profile}"
    result = tlc.run(tlc.SPECS / "MCVirtualDiskSteps.tla", tlc.SPECS / f"{name}.cfg", short=True)
    if result.status != "ok":
        raise ValueError(f"{name}: {result.message or result.violated}")
    contract = Contract(profile)
    for before, request, answer, after in _steps(result.output):
        contract.steps[_number(contract, before), request][answer].add(_number(contract, after))
    return contract


def _number(contract: Contract, state: str) -> int:
    return contract.states.setdefault(state, len(contract.states))


def _steps(output: str) -> Iterator[tuple[str, str, str, str]]:
    for line in output.splitlines():
        if line.startswith('"<<<<'):
            before, _, rest = line[3:-3].replace('\\"', '"').partition(SPLIT)
            said, _, after = rest.partition(">>, <<[live |-> ")
            request, answer = _said(f"<<[op |-> {said}>>")
            yield _state(before), request, answer, _state("<<[live |-> " + after)


@cache
def _state(text: str) -> str:
    return values.short(values.read(text))


@cache
def _said(text: str) -> tuple[str, str]:
    request, answer, data = values.read(text).values()
    request = {
        name: list(held.values()) if isinstance(held, dict) else held
        for name, held in request.items()
    }
    if request.get("view") == LIVE:
        del request["view"]
    if request["op"] == "read" and answer == "ok":
        answer = f"ok {list(data.values())}"
    return _key(request), str(answer)


def _key(request: Request) -> str:
    return json.dumps(request, sort_keys=True)
