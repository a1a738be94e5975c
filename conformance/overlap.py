"""Several connections to one device at once: what they wrote and read, and when, as a history for linearizable.judge."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from conformance import block
from conformance.linearizable import FOREVER, Call

HOT = 4  # blocks that all threads meet in


class Wrong(Exception):
    """A read returned what nobody wrote. One line."""


def drive(connect: Callable[[], Any], threads: int, requests: int, seed: int, block_size: int = 512) -> list[Call]:
    """So many threads, each with a connection of its own, send so many requests each to the first blocks of the device.

    The device reads as zeroes at first. A device has `read`, `write` and `close`, as conformance.media.nbd.Device has.
    Raises Wrong, and whatever a device raises; a write that raised may have happened."""
    devices = [connect() for _ in range(threads)]
    histories: list[list[Call]] = [[] for _ in devices]
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        try:
            choose = random.Random(seed * threads + number)
            start.wait()
            for request in range(requests):
                _ask(devices[number], choose, 1 + number * requests + request, histories[number], block_size)
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
    """One request, of one or two blocks; a tag is used once."""
    count = 1 + (choose.random() < 0.3)
    lba = choose.randrange(HOT)
    if choose.random() < 0.5:
        data = b"".join(block.encode(tag, at, tag, size) for at in range(lba, lba + count))
        invoked, returned = time.monotonic_ns(), FOREVER
        try:
            device.write(lba * size, data)
            returned = time.monotonic_ns()
        finally:
            history += [Call("write", at, tag, invoked, returned) for at in range(lba, lba + count)]
        return
    invoked = time.monotonic_ns()
    data = device.read(lba * size, count * size)
    returned = time.monotonic_ns()
    for at in range(lba, lba + count):
        found = block.decode(data[(at - lba) * size : (at - lba + 1) * size], at)
        if isinstance(found, block.Damage):
            raise Wrong(f"block {at} reads as {found.kind}: {found.detail}")
        history.append(Call("read", at, found, invoked, returned))
