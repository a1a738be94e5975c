"""Simpler variants of a program, for the shrinker: groups of requests, and simpler requests."""

import random
from collections.abc import Callable, Collection, Iterator
from typing import Any

from conformance.programs.names import ALLOWED, LONGEST
from conformance.programs.situation import BACK, DEGRADED
from conformance.programs.swarm import BEYOND_TOLERANCE

Request = dict[str, Any]
Chosen = Callable[[Request], bool]

MOST_SENT = 120  # requests, in variants of a program that differ in what is in flight together
LEAST_SHAPES = 2  # variants, of a long program
MOST_CUTS = 256  # seeds of power cuts
HINTS = ("clean", "checkpoint", "flush", "restart", "crash")  # they do what otherwise takes time
CAPABILITIES = {"clean": "clean", "checkpoint": "clean"}  # of hints; the others are named alike
SHORTEST_WINDOW = 8  # requests
MOST_BLOCKS = 64  # of a write that stands in for other requests
SPARED = ("cut", "wait", "schedule", "fua")  # fields that a request can do without
PLAIN = 2  # characters of a name that needs no plainer one, at most
NAME_FIELDS = ("name", "view")  # fields of a request that hold the name of a snapshot


def sent_beyond_tolerance(program: list[Request], tolerates: int, spares: int = 0) -> int:
    """Return the number of requests that no program sends: changes and restarts while more devices
    have failed than the target tolerates. What is in its memory cannot be written then.

    What brings a device back does not count if the power may fail in it: it may have no effect.
    """
    failed: dict[int, str] = {}
    found = 0
    for request in program:
        op, device = request["op"], request.get("device", 0)
        found += len(failed) > tolerates and op not in BEYOND_TOLERANCE
        if op == "fail":
            failed[device] = request.get("mode", "")
        elif "cut" in request:
            continue
        elif op in ("return", "replace") and device in failed:
            failed[device] = BACK
        elif op == "settle":
            rebuilt = [one for one, mode in failed.items() if mode == DEGRADED][:spares]
            failed = {
                one: mode for one, mode in failed.items() if mode != BACK and one not in rebuilt
            }
    return found


def groups(program: list[Request]) -> list[Chosen]:
    """Return groups of requests that may not matter together: each says which requests are in it.

    One group holds what leaves alone the blocks that the last request is about. The others hold
    all requests for one device, about one snapshot, or of one operation."""
    requests = program[1:]
    found: list[Chosen] = []
    if requests and "lba" in requests[-1]:
        last = touched(requests[-1])
        found.append(lambda request: "lba" in request and not set(touched(request)) & set(last))
    for key in ("device", "op"):
        for value in dict.fromkeys(request[key] for request in requests if key in request):
            found.append(lambda request, key=key, value=value: request.get(key) == value)  # type: ignore[misc]
    for name in dict.fromkeys(filter(None, map(snapshot_of, requests))):
        found.append(lambda request, name=name: snapshot_of(request) == name)  # type: ignore[misc]
    return found


def touched(request: Request) -> range:
    """Return the logical block addresses (LBAs) that a request is about."""
    count = len(request["tags"]) if "tags" in request else request.get("count", 1)
    return range(request["lba"], request["lba"] + min(count, 1 << 16))


def snapshot_of(request: Request) -> str | None:
    """Return the name of the snapshot that a request is about; None if it is about none."""
    name: str | None = request.get("name", request.get("view"))
    return name


def stand_ins(program: list[Request], capabilities: Collection[str]) -> list[Request]:
    """Return requests that may each do what several of the program do together.

    A request for background work, or a write or an unmap of the whole disk. A target does much in
    small steps between requests and once enough was written, so that a failure may need many
    requests though each of them matters little."""
    blocks = min(program[0]["blocks"], MOST_BLOCKS)
    newest = max((tag for one in program for tag in one.get("tags", ())), default=0)
    tags = [newest + 1 + newest % 2 + 2 * at for at in range(blocks)]  # odd: no two blocks alike
    hints = [{"op": op} for op in HINTS if CAPABILITIES.get(op, op) in capabilities]
    whole = [{"op": "write", "lba": 0, "tags": tags}, {"op": "unmap", "lba": 0, "count": blocks}]
    return hints + [one for one in whole if one["op"] in (*capabilities, "write")]


def windows(program: list[Request], longest: int) -> Iterator[list[Request]]:
    """Yield the last requests of the program, more each time, with the snapshots that they name."""
    length = SHORTEST_WINDOW
    while length < min(longest, len(program) - 1):
        start = len(program) - length
        names = {name for name in map(snapshot_of, program[start:]) if name is not None}
        taken = {
            request["name"]: at
            for at, request in enumerate(program[:start])
            if request["op"] == "snapshot" and request["name"] in names
        }
        yield [program[0], *(program[at] for at in sorted(taken.values())), *program[start:]]
        length *= 2


def fewer_in_flight(program: list[Request]) -> Iterator[list[Request]]:
    """Yield the program with fewer requests in flight, one at a time first."""
    most = max((request.get("overlaps", 0) for request in program), default=0)
    for fewer in sorted({0, 1, most // 2, most - 1}):
        if 0 <= fewer < most:
            yield [_overlapping(request, fewer) for request in program]


def without(program: list[Request], field: str) -> list[Request]:
    """Return the program without this field of requests, such as one of SPARED."""
    return [{key: value for key, value in request.items() if key != field} for request in program]


def simpler(program: list[Request]) -> Iterator[list[Request]]:
    """Yield programs with fewer requests in flight, a smaller disk, blocks closer together, plain
    names, a simpler request, or one that waits for no more than there are.
    """
    yield from fewer_in_flight(program)
    blocks = program[0]["blocks"]
    for fewer in sorted({1, 2, 4, blocks // 2, blocks - 1}):
        if 0 < fewer < blocks:
            yield [{**program[0], "blocks": fewer}, *program[1:]]
    yield from _closer(program, blocks)
    yield from _plainly_named(program)
    for index in range(len(program) - 1, 0, -1):
        for request in _simpler_request(program[index], blocks):
            yield [*program[:index], request, *program[index + 1 :]]
        later = len(program) - 1 - index
        if 0 < later < program[index].get("wait", 0):  # a target would wait until it gives up
            yield [*program[:index], {**program[index], "wait": later}, *program[index + 1 :]]


def reshaped(program: list[Request], least: int = LEAST_SHAPES) -> Iterator[list[Request]]:
    """Yield the program with other requests in flight together and other power cuts, at least so
    many variants; none if it has neither.

    Which step of which request comes first depends on all that is in flight, and what a power cut
    in an operation leaves on all that was written before it. So a failure may be gone when requests
    are left out, and come back in another shape."""
    most = max((request.get("overlaps", 0) for request in program), default=0)
    if not most and not any("cut" in request for request in program):
        return
    for seed in range(max(MOST_SENT // len(program), least)):
        choose = random.Random(seed)
        alone = choose.choice([0.0, 0.5, 1.0])  # of the requests that are alone, so many stay so
        yield [
            _reshaped(request, choose, most, at > 0, alone) for at, request in enumerate(program)
        ]


def _reshaped(
    request: Request, choose: random.Random, most: int, may_overlap: bool, alone: float
) -> Request:
    """Return the request in another shape. A request that is sent alone stays so with the
    probability `alone`."""
    if most and (request.get("overlaps") or may_overlap and choose.random() >= alone):
        together = choose.choice([most, choose.randint(0, most)])
        request = _overlapping({**request, "overlaps": together}, most)
    if "cut" in request and choose.randrange(2):
        after = choose.randint(1, 1 + request["cut"]["after"])
        request = {**request, "cut": {"after": after, "seed": choose.randrange(MOST_CUTS)}}
    return request


def _overlapping(request: Request, most: int) -> Request:
    """Return the request, in flight together with at most `most` of those before it."""
    together = min(request.get("overlaps", 0), most)
    rest = {key: value for key, value in request.items() if key != "overlaps"}
    return rest | ({"overlaps": together} if together else {})


def _closer(program: list[Request], blocks: int) -> Iterator[list[Request]]:
    """Yield the same requests on the blocks from 0 on, without gaps, if they use few blocks."""
    used = sorted(
        {
            lba
            for request in program[1:]
            if "lba" in request and request["lba"] < blocks
            for lba in touched(request)
        }
    )
    places = {lba: place for place, lba in enumerate(used)}
    if len(used) < blocks and used != list(places.values()):
        moved = [
            {**request, "lba": places[request["lba"]]} if request.get("lba") in places else request
            for request in program
        ]
        yield moved


def _plainly_named(program: list[Request]) -> Iterator[list[Request]]:
    """Yield the program with short names in place of all long ones, and in place of one of them.

    A name that is not allowed stays: the target may have to refuse it."""
    names = list(dict.fromkeys(name for name in map(snapshot_of, program) if name))
    allowed = [name for name in names if len(name) <= LONGEST and not set(name) - {*ALLOWED}]
    odd = [name for name in allowed if len(name) > PLAIN]
    plain = dict(zip(odd, (name for name in ALLOWED if name not in names), strict=False))
    for some in [plain, *({name: plain[name]} for name in plain if len(plain) > 1)]:
        if some:
            yield [
                {
                    key: some.get(value, value) if key in NAME_FIELDS else value
                    for key, value in one.items()
                }
                for one in program
            ]


def _simpler_request(request: Request, blocks: int) -> Iterator[Request]:
    if "view" in request:  # live: then no snapshot may be needed
        yield {key: value for key, value in request.items() if key != "view"}
    for field in SPARED:
        if field in request:
            yield {key: value for key, value in request.items() if key != field}
    if "overlaps" in request:
        yield _overlapping(request, 0)
        yield _overlapping(request, request["overlaps"] - 1)
    if "lba" not in request:
        return
    tags, count, lba = request.get("tags", ()), request.get("count", 1), request["lba"]
    if len(tags) > 1:
        yield {**request, "tags": tags[:1]}
        half = len(tags) // 2
        yield {**request, "tags": tags[:half]}
        yield {**request, "tags": tags[half:], "lba": lba + half}
        yield {**request, "tags": tags[1:], "lba": lba + 1}
        yield {**request, "tags": tags[:-1]}
    if count > 1:
        yield {**request, "count": 1}
        yield {**request, "count": count // 2}
        yield {**request, "count": count - count // 2, "lba": lba + count // 2}
        yield {**request, "count": count - 1, "lba": lba + 1}
        yield {**request, "count": count - 1}
    if lba > blocks:
        yield {**request, "lba": blocks}
