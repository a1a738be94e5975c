"""The requests of several connections to one disk, recorded as a history for linearizable.judge."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from conformance.contract import tagged_block
from conformance.judging.linearizable import FOREVER, MOST_STEPS, Call, judge
from conformance.targets import Factory
from conformance.targets.base import RAISED, Message, Target, TargetFailure, Unusable, named

HOT = 4  # blocks that all threads meet in
BLOCKS = HOT + 1  # a request has up to two
SECTOR = 512  # bytes of a block, unless told otherwise


class Wrong(Exception):
    """Raised if a read returned data that was never written. The message is one line."""


class Overlap(NamedTuple):
    """The result of rounds of requests that overlap.

    `verdict` is pass, fail or inconclusive; `said` is why.
    """

    verdict: str
    connections: int
    rounds: int
    calls: int  # the number of calls for single blocks
    said: str = ""

    @property
    def words(self) -> str:
        """One line."""
        return (
            f"{self.rounds} round{'s' * (self.rounds != 1)} of {self.connections} "
            f"connections at once, {self.calls} calls to single blocks: "
            f"{'linearizable' if self.verdict == 'pass' else self.verdict + ': ' + self.said}"
        )


def run(
    factory: Factory,
    connections: int,
    rounds: int,
    requests: int,
    seed: int,
    crashes: bool = True,
    most_steps: int = MOST_STEPS,
) -> Overlap:
    """Run rounds of overlapping requests on new disks of the target, up to the first that fails.

    In a round each of some `connections` sends some `requests`. It ends with a flush and a power
    cut, if the target has them and `crashes` is set, and with a read of all blocks, whose answer
    has to fit the others. `seed` determines the requests, not how they interleave.
    """
    verdict, said, calls = "pass", "", 0
    for number in range(rounds):
        choose = random.Random(seed << 20 | number)
        options = factory.draw(choose)
        try:
            target = factory(options)
            try:
                history = _round(target, connections, requests, choose.getrandbits(32), crashes)
            finally:
                target.close()
        except Unusable as error:
            return Overlap("inconclusive", connections, number, calls, error.message)
        except RAISED as error:  # it is the target's, or its device's
            return Overlap("fail", connections, number + 1, calls, named(error))
        calls += len(history)
        opinion = judge(history, most_steps)
        if opinion.verdict != "pass":
            verdict, said = opinion.verdict, f"block {opinion.lba} in round {number}"
        if opinion.verdict == "fail":
            stuck = "; ".join(f"{call.op} of tag {call.tag}" for call in opinion.stuck)
            return Overlap(
                "fail", connections, number + 1, calls, f"{said}: no order explains {stuck}"
            )
    return Overlap(verdict, connections, rounds, calls, said)


def _round(target: Target, connections: int, requests: int, seed: int, crashes: bool) -> list[Call]:
    connect = getattr(target, "connect", None)
    if connect is None or target.hello.get("payload") == "tags":
        raise Unusable(
            "it takes one request at a time: requests overlap on targets that have `connect`, "
            "such as NBD servers"
        )
    _done(target, {"op": "create", "blocks": BLOCKS})
    size, able = target.hello["block_size"], target.hello["capabilities"]
    history = drive(connect, connections, requests, seed, size)
    if crashes and {"flush", "crash"} <= set(able) and target.hello["crash_profile"]:
        _done(target, {"op": "flush"})
        _done(target, {"op": "crash"})
    invoked = time.monotonic_ns()
    data = _done(target, {"op": "read", "lba": 0, "count": BLOCKS})["data"]
    return history + _found(data, range(BLOCKS), invoked, time.monotonic_ns(), size)


def _done(target: Target, request: Message) -> Message:
    answer = target.request(request)
    if not answer["ok"]:
        raise TargetFailure(
            "protocol",
            f"{request['op']} was refused: {answer.get('error')} {answer.get('message', '')}",
        )
    return answer


def drive(
    connect: Callable[[], Any], threads: int, requests: int, seed: int, block_size: int = SECTOR
) -> list[Call]:
    """Send requests to the first blocks of the device, from threads with a connection each.

    The device reads as zeroes at first. A device has `read`, `write` and `close`, as
    conformance.media.nbd.NbdDevice has. Raises Wrong, and any error of a device; a write that
    raised may have happened.
    """
    devices = [connect() for _ in range(threads)]
    histories: list[list[Call]] = [[] for _ in devices]
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        try:
            choose = random.Random(seed * threads + number)
            start.wait()
            for request in range(requests):
                _ask(
                    devices[number],
                    choose,
                    1 + number * requests + request,
                    histories[number],
                    block_size,
                )
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for device in devices:
        device.close()
    if errors:
        raise errors[0]
    return [call for history in histories for call in history]


def _ask(device: Any, choose: random.Random, tag: int, history: list[Call], size: int) -> None:
    """Send one request, of one or two blocks; a tag is used once."""
    count = 1 + (choose.random() < 0.3)
    lba = choose.randrange(HOT)
    if choose.random() < 0.5:
        data = b"".join(tagged_block.encode(tag, at, tag, size) for at in range(lba, lba + count))
        invoked, returned = time.monotonic_ns(), FOREVER
        try:
            device.write(lba * size, data)
            returned = time.monotonic_ns()
        finally:
            history += [Call("write", at, tag, invoked, returned) for at in range(lba, lba + count)]
        return
    invoked = time.monotonic_ns()
    data = device.read(lba * size, count * size)
    history += _found(data, range(lba, lba + count), invoked, time.monotonic_ns(), size)


def _found(data: bytes, blocks: range, invoked: int, returned: int, size: int) -> list[Call]:
    """Return the read that found this, as calls."""
    calls = []
    for index, at in enumerate(blocks):
        tag = tagged_block.decode(bytes(data[index * size : (index + 1) * size]), at)
        if isinstance(tag, tagged_block.Damage):
            raise Wrong(f"block {at} reads as {tag.kind}: {tag.detail}")
        calls.append(Call("read", at, tag, invoked, returned))
    return calls
