"""Making a failing program short: drop requests, then make what is left simpler. Deterministic."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from conformance.contract.trace import Event, Trace
from conformance.judging.explain import Verdict

Request = dict[str, Any]
Attempt = Callable[[list[Request]], tuple[Trace, Verdict] | None]

MOST_TRIES = 2000
MOST_SECONDS = 20.0


def shrink(
    trace: Trace,
    verdict: Verdict,
    attempt: Attempt,
    most_tries: int = MOST_TRIES,
    most_seconds: float = MOST_SECONDS,
) -> tuple[Trace, Verdict]:
    """The shortest failing trace found, and its verdict.

    `attempt` runs a program and returns what came of it if that fails alike, else None. If the
    failure does not happen again, the trace comes back as far as where it failed.
    """
    ends = time.monotonic() + most_seconds
    tries = 0
    best = replace(trace, events=_to_failure(trace, verdict)), verdict
    program = _until_failure(trace, verdict)

    def better(candidate: list[Request]) -> bool:
        nonlocal tries, best, program
        if tries >= most_tries or time.monotonic() > ends:
            return False
        tries += 1
        outcome = attempt(candidate)
        if outcome is None:
            return False
        best, program = outcome, candidate
        shorter = _until_failure(*outcome)
        if len(shorter) < len(candidate):
            program = shorter
        return True

    if not better(program):
        return best
    size = None
    while size != _size(program):
        size = _size(program)
        chunk = max(1, (len(program) - 1) // 2)
        while chunk:
            at = len(program) - chunk
            while at >= 1:
                better(program[:at] + program[at + chunk :])
                at = min(at, len(program)) - chunk
            chunk //= 2
        simpler = True
        while simpler and tries < most_tries and time.monotonic() < ends:
            simpler = any(better(candidate) for candidate in _simpler(program))
    return best


def _until_failure(trace: Trace, verdict: Verdict) -> list[Request]:
    return replace(trace, events=_to_failure(trace, verdict)).program


def _to_failure(trace: Trace, verdict: Verdict) -> list[Event]:
    return trace.events if verdict.at is None else trace.events[: verdict.at + 1]


def _size(program: list[Request]) -> tuple[int, int]:
    return len(program), len(str(program))


def _simpler(program: list[Request]) -> Iterator[list[Request]]:
    """Programs with one request simpler, or a smaller disk."""
    blocks = program[0]["blocks"]
    for fewer in sorted({1, 2, 4, blocks // 2, blocks - 1}):
        if 0 < fewer < blocks:
            yield [{**program[0], "blocks": fewer}, *program[1:]]
    for index in range(len(program) - 1, 0, -1):
        for request in _simpler_request(program[index], blocks):
            yield [*program[:index], request, *program[index + 1 :]]


def _simpler_request(request: Request, blocks: int) -> Iterator[Request]:
    if "cut" in request:
        yield {key: value for key, value in request.items() if key != "cut"}
    tags, count, lba = request.get("tags", ()), request.get("count", 1), request.get("lba")
    if len(tags) > 1:
        yield {**request, "tags": tags[:1]}
        yield {**request, "tags": tags[1:], "lba": lba + 1}
        yield {**request, "tags": tags[:-1]}
    if count > 1:
        yield {**request, "count": 1}
        yield {**request, "count": count - 1, "lba": lba + 1}
        yield {**request, "count": count - 1}
    if lba is not None and lba > blocks:
        yield {**request, "lba": blocks}
