"""Workers drive the parts of a campaign: in this process, in others on this machine, or on a dask
cluster. All give the same parts."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import suppress
from itertools import count as numbers
from multiprocessing.connection import Connection
from typing import Any, Protocol

from conformance.campaign import interrupts
from conformance.campaign.batches import Part, Plan, drive, in_worker
from conformance.campaign.crew import LONGEST_ENDING, LOOK, Crew
from conformance.judging.oracles import Oracle
from conformance.targets import Factory, signs_of_life
from conformance.targets.signs_of_life import Sign

GRACE = 5.0  # seconds in which interrupted workers hand over what they have done
AHEAD = 2  # parts under way for each worker: what comes after the end is thrown away


class NoCluster(Exception):
    """The cluster cannot be reached, or dask is not there. The message is one line."""


class Workers(Protocol):
    """Drive and judge the parts of a plan."""

    def parts(
        self, plan: Plan, first: int, count: int | None, until: float | None
    ) -> Iterator[tuple[int, Part]]:
        """Yield parts in order, with their numbers, from part `first` on until `count` traces are
        done; without end if None. From the time `until` on, a part ends with the trace under way.
        """
        ...

    def close(self) -> None:
        """End the processes."""
        ...


class InProcess:
    """This process, one part after another."""

    def __init__(self, factory: Factory, oracles: Mapping[str, Oracle]) -> None:
        self._factory, self._oracles = factory, oracles

    def parts(
        self, plan: Plan, first: int, count: int | None, until: float | None
    ) -> Iterator[tuple[int, Part]]:
        for number, most in _wanted(plan, first, count):
            part = drive(self._factory, self._oracles, plan, number, most, until)
            yield number, part
            if part.interrupted:
                return

    def close(self) -> None:
        pass


class Elsewhere:
    """Other processes: `submit` hands a call to one of `workers` and returns a future. `ended` says
    how processes have ended by themselves in traces of a seed."""

    def __init__(
        self,
        submit: Callable[..., Any],
        workers: int,
        close: Callable[[], None],
        interrupt: Callable[[], None] = lambda: None,
        ended: Callable[[int], str] = lambda seed: "",
    ) -> None:
        self.submit, self._most = submit, AHEAD * workers
        self._close, self._interrupt, self.ended = close, interrupt, ended

    def parts(
        self, plan: Plan, first: int, count: int | None, until: float | None
    ) -> Iterator[tuple[int, Part]]:
        wanted = _wanted(plan, first, count)
        under_way: deque[tuple[int, Any]] = deque()
        try:
            while True:
                while len(under_way) < self._most and (one := next(wanted, None)):
                    under_way.append((one[0], self.submit(in_worker, plan, *one, until)))
                if not under_way:
                    return
                number, future = under_way[0]
                part = future.result()
                under_way.popleft()
                yield number, part
        except BrokenExecutor as error:
            raise BrokenExecutor(self.ended(plan.seed) or str(error)) from None
        except KeyboardInterrupt:
            yield from self._begun(under_way)
            raise
        finally:
            for _, future in under_way:
                future.cancel()

    def _begun(self, under_way: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Part]]:
        """Interrupt the parts under way, and yield what was done of each."""
        begun = [one for one in under_way if not one[1].cancel()]
        self._interrupt()
        ends = time.monotonic() + GRACE
        for number, future in begun:
            with suppress(TimeoutError, CancelledError, BrokenExecutor, KeyboardInterrupt):
                yield number, future.result(max(0, ends - time.monotonic()))

    def close(self) -> None:
        self._close()


def on_this_machine(jobs: int) -> Elsewhere:
    """Return workers in processes of their own. (They are started anew: a fork would share the
    daemons of the engines.)

    Where there is one for each processor, it stays there, with the engine that it starts: the two
    take turns, and on another processor each would have to be woken, with cold caches.
    """
    context = multiprocessing.get_context("spawn")
    processors = sorted(os.sched_getaffinity(0))
    places = context.SimpleQueue()
    for number in range(jobs):
        one = {processors[number % len(processors)]}
        places.put((number, one if jobs >= len(processors) else processors))
    signs = context.RawArray(Sign, jobs)
    campaign, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _stay, (places, signs, campaign))
    crew = Crew(signs)

    def submit(*call: Any) -> Any:
        try:
            return pool.submit(_interruptible, *call)
        finally:
            crew.look()

    def close() -> None:
        end.close()
        pool.shutdown(wait=False, cancel_futures=True)
        crew.end()

    return Elsewhere(submit, jobs, close, end.close, crew.ended)


_ended = threading.Event()  # in a worker: the campaign is over
_idle = threading.Event()  # in a worker: no call is under way
_idle.set()


def _stay(places: Any, signs: Any, campaign: Connection) -> None:
    """Keep this worker on its processors, and show what it does.

    Ctrl-C is for the parent, and for a call under way. So is the end of the campaign, when the
    parent closes its end of the pipe `campaign`. SIGTERM, which `timeout` sends to all processes of
    a group, ends a call under way and then the worker. A worker whose parent is gone ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminated)
    sys.unraisablehook = interrupts.unless_kept
    number, processors = places.get()
    os.sched_setaffinity(0, processors)
    signs_of_life.show(signs[number])
    worker = threading.get_ident()
    parent = multiprocessing.parent_process()

    def interrupt_at_end() -> None:
        campaign.poll(None)
        _ended.set()
        signal.pthread_kill(worker, signal.SIGINT)
        while parent and os.getppid() == parent.pid:  # it ends this worker
            time.sleep(LOOK)
        _idle.wait(LONGEST_ENDING)
        os._exit(1)

    threading.Thread(target=interrupt_at_end, daemon=True).start()


def _interruptible(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call it; Ctrl-C ends the call with KeyboardInterrupt, and does not end the process.

    The pool cannot take back a call that it has handed to this process. Such a call does not begin
    when the campaign is over or was interrupted.
    """
    _idle.clear()
    signal.signal(signal.SIGINT, _interrupted)
    try:
        if _ended.is_set():
            raise KeyboardInterrupt
        return call(*arguments)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _idle.set()


def _interrupted(number: int, frame: Any) -> None:
    """End the call under way, once: what it does to tidy up is not interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _ended.set()
    interrupts.ask(number, frame)


def _terminated(number: int, frame: Any) -> None:
    """End the call under way, and then the process, once the parent has what the call returns."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def end() -> None:
        _idle.wait(LONGEST_ENDING)
        time.sleep(LOOK)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    if not _ended.is_set():
        _ended.set()
        if not _idle.is_set():
            _interrupted(number, frame)


def on_cluster(address: str) -> Elsewhere:
    """Return the workers of the dask scheduler at this address; a cluster on this machine if it is
    "local". Raises NoCluster.
    """
    try:
        from distributed import Client  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise NoCluster(
            "dask.distributed is not installed: .venv/bin/pip install -r requirements-cluster.txt"
        ) from None
    try:
        client = (
            Client(n_workers=None, threads_per_worker=1, dashboard_address=None)
            if address == "local"
            else Client(address, timeout=10)
        )
    except (OSError, ValueError) as error:
        raise NoCluster(f"no dask scheduler at {address}: {error}") from None
    workers = len(client.scheduler_info(n_workers=-1)["workers"])
    if not workers:
        client.close()
        raise NoCluster(f"the scheduler at {address} has no workers")
    return Elsewhere(lambda *call: client.submit(*call, pure=False), workers, client.close)


def _wanted(plan: Plan, first: int, count: int | None) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the parts, and how many traces each is to have."""
    for number in numbers(first):
        left = plan.length if count is None else count - number * plan.length
        if left <= 0:
            return
        yield number, min(left, plan.length)
