"""Threads that carry out requests at the same time, for engines whose calls block."""

import queue
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from conformance.targets.base import Message, PowerCut
from conformance.targets.pauses import PAUSE, awaited, held

IN_FLIGHT = 8  # requests at once, of the targets that use these threads
LONGEST_WAIT = 20.0  # seconds, until what was in flight at a power cut has ended

Outcome = Message | Exception
Done = Callable[[Outcome], None]
CarryOut = Callable[[Message], Message]
Failed = Callable[[Message], bool]


class Unanswered(Exception):
    """Raised by `carry_out` if the request is never answered, because the power has failed."""


class Threads:
    """Gives each request to a thread of its own, up to `most` at once.

    `carry_out` returns the answer, in that thread. What it raises is handed to `done`, except
    Unanswered: then `done` is not called.
    `power_failed` is asked before an answer is given: if it returns True, nothing that is in
    flight is answered, and `done` gets a PowerCut. `pause` is how long an answer is awaited at
    most, in seconds, where `schedule` asks for that."""

    def __init__(
        self,
        carry_out: CarryOut,
        power_failed: Failed = lambda _: False,
        most: int = IN_FLIGHT,
        pause: Callable[[], float] = lambda: PAUSE,
        hold: Callable[[Message], float] = lambda _: 0.0,
    ) -> None:
        self._carry_out, self._power_failed, self._most = carry_out, power_failed, most
        self._pause, self._hold = pause, hold
        self._waiting: queue.SimpleQueue[tuple[int, int, Message, Done] | None] = (
            queue.SimpleQueue()
        )
        self._idle = threading.Condition()  # guards what follows; reentrant
        self._life = 0  # one ends with each power cut
        self._calls = 0  # so far
        self._ops: list[str] = []  # of the requests that were called and have not ended
        self._threads: list[threading.Thread] = []

    def call(self, message: Message, done: Done) -> None:
        """Start the request; `done` is called once, in its thread, unless it is cut.

        Return after a pause, if `schedule` asks for one: see conformance.targets.pauses."""
        with self._idle:
            self._ops.append(message["op"])
            self.release()
            if len(self._threads) < min(len(self._ops), self._most):
                self._threads.append(threading.Thread(target=self._work, daemon=True))
                self._threads[-1].start()
            self._waiting.put((self._life, self._calls, message, done))
            still = len(self._ops) - min(awaited(message), len(self._ops) - 1)
            self._idle.wait_for(lambda: len(self._ops) <= still, self._pause())

    def any_of(self, ops: Collection[str]) -> bool:
        """Return whether a request of such an operation is in flight."""
        with self._idle:
            return any(op in ops for op in self._ops)

    def release(self) -> None:
        """Let the requests go on that are held back until the next call."""
        with self._idle:
            self._calls += 1
            self._idle.notify_all()

    def cut(self) -> None:
        """Answer nothing that is in flight from now on. It may still be carried out."""
        with self._idle:
            self._life += 1

    def wait(self) -> None:
        """Return when nothing is carried out any more. Raises TimeoutError."""
        with self._idle:
            if not self._idle.wait_for(lambda: not self._ops, LONGEST_WAIT):
                what = ", ".join(self._ops)
                raise TimeoutError(f"{what} did not end within {LONGEST_WAIT:g} seconds")

    def close(self) -> None:
        """End the threads, when their requests have ended."""
        self.cut()
        for _ in self._threads:
            self._waiting.put(None)
        self._threads = []

    def _work(self) -> None:
        while (job := self._waiting.get()) is not None:
            life, number, message, done = job
            outcome: Outcome = PowerCut()
            if life == self._life:
                try:
                    if held(message):
                        self._await_call(number, self._hold(message))
                    outcome = self._carry_out(message)
                except Exception as error:  # it is the target's: `done` takes it to the main thread
                    outcome = error
            with self._idle:
                if life == self._life and not isinstance(outcome, Unanswered):
                    if self._power_failed(message):
                        self._life += 1
                        outcome = PowerCut()
                    done(outcome)
                self._ops.remove(message["op"])
                self._idle.notify_all()

    def _await_call(self, number: int, seconds: float) -> None:
        """Return at the call behind this number, or after so many seconds."""
        with self._idle:
            self._idle.wait_for(lambda: self._calls > number, seconds)


class Gate:
    """Lets in many at once, or one alone. Who waits to be alone goes before those who come later.

    Not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._claimed = False  # True while a thread is alone, or waits to be alone

    def busy(self) -> bool:
        """Return whether a thread is inside."""
        return self._claimed or self._inside > 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """While this block runs, no thread is in `alone`; others may be in `together`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._claimed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this block runs, no other thread is in `alone` or `together`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._claimed)
            self._claimed = True
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._claimed = False
                self._changed.notify_all()


class Ranges:
    """Ranges of blocks, each held by one thread at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: list[range] = []

    @contextmanager
    def held(self, first: int, count: int) -> Iterator[None]:
        """While this block runs, no other thread holds any of these blocks of the disk."""
        mine = range(first, first + count)
        with self._changed:
            self._changed.wait_for(
                lambda: all(
                    other.stop <= mine.start or mine.stop <= other.start for other in self._held
                )
            )
            self._held.append(mine)
        try:
            yield
        finally:
            with self._changed:
                self._held.remove(mine)
                self._changed.notify_all()
