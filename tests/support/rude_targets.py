"""Targets in process that end the process, print, hang in C, or are no targets at all; a call that
waits for an interrupt."""

import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from conformance.examples.list_disk import ListDisk
from conformance.targets import time_limit
from conformance.targets.base import Message

LATE = 40  # the request with which the trouble begins


class _Rude(ListDisk):
    requests = 0

    def request(self, message: Message) -> Message:
        type(self).requests += 1
        if self.requests >= LATE:
            self.trouble()
        return super().request(message)

    def trouble(self) -> None:
        raise NotImplementedError


class Exits(_Rude):
    def trouble(self) -> None:
        sys.exit(0)


class ExitsInFlight(ListDisk):
    """The same, of a target that takes several requests at a time."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.hello = {**self.hello, "protocol": 2, "in_flight": 4}
        self._flying: list[Any] = []

    def call(self, message: Message, done: Any) -> None:
        self._flying.append((message, done))
        if len(self._flying) == 4:
            sys.exit(0)

    def step(self) -> bool:
        for message, done in self._flying:
            done(self.request(message))
        stepped = bool(self._flying)
        self._flying = []
        return stepped


class ExitsWhenOpened(ListDisk):
    def __init__(self, options: dict[str, Any]) -> None:
        sys.exit(0)


class ExitsWhenClosed(ListDisk):
    def close(self) -> None:
        sys.exit(0)


class Aborts(_Rude):
    def trouble(self) -> None:
        os.abort()


class Hangs(_Rude):
    """It keeps the lock of the interpreter, so neither timers nor signals reach it."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        if multiprocessing.parent_process() is not None:  # a worker, which runs no other test
            time_limit.PATIENT = 0.5  # type: ignore[assignment]  # times ten seconds

    def trouble(self) -> None:
        sum(range(10**13))


class Prints(ListDisk):
    print("of the module")  # when it is imported

    def __init__(self, options: dict[str, Any]) -> None:
        print("of the opening")
        super().__init__(options)

    def request(self, message: Message) -> Message:
        print("of the request")
        return super().request(message)

    def close(self) -> None:
        print("of the closing")
        super().close()


class WithoutHello:
    def __init__(self, options: dict[str, Any]) -> None:
        pass


class WithoutArguments:
    pass


def until_interrupted(begun: Path) -> str:
    """Sleep, and say that it was interrupted; `begun` is a file that it makes before."""
    try:
        begun.touch()
        time.sleep(60)
    except KeyboardInterrupt:
        return "interrupted"
    return "not interrupted"
