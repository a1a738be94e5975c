"""The engine as a target that takes several requests at a time: version 2 of the dialogue.

    adapter.call(message, done)     # done(answer) is called by some later step, or by the call
    while adapter.step(): ...       # one process of the engine takes one step

The field `schedule` of a request is a number that says how the steps go until the next call: its
last octal digit, how many are taken at once, unless the request is answered before; the others,
whose turn it is (Schedule of refmodel.runtime.scheduler). So a run depends on nothing but its
requests. Without the field the process that has waited longest takes the next step.
"""

from collections.abc import Callable
from typing import Any

from refmodel.adapter.dialogue import Message, data, integer, refused, text
from refmodel.adapter.engine_target import Adapter
from refmodel.core.errors import BadRequest, DiskError, UnknownOutcome, Unsupported
from refmodel.engine.requests import Requests
from refmodel.runtime.effects import Process
from refmodel.runtime.scheduler import DIGIT, Schedule

TOGETHER = frozenset(["read", "write", "unmap", "flush", "snapshot", "delete", "revert"])

Done = Callable[[Message], None]


class OverlappingAdapter(Adapter):
    """An adapter with `call` and `step` beside `request`.

    What happens inside is asked for with `drain_events`; `submit` has the `id` of its request.

    Engines that cannot overlap answer each call at once; their hello says that one request may be
    in flight.
    """

    schedules = True  # a request may have the field `schedule`

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cutting: object = None  # the call that has set the power to fail

    def call(self, message: Message, done: Done) -> None:
        """Call a request. Raises PowerCut if its `cut` took effect; then nothing is in flight.

        What cannot overlap is answered at once. It is refused while something is in flight, except
        for `crash`, which ends what is in flight: nothing of that is answered any more.
        """
        disk = self._disk
        if message.get("op") not in TOGETHER or disk is None or disk.requests is None or self._lost:
            done(self._alone(message))
            return
        digits, steps = divmod(message.get("schedule", 0), DIGIT)
        disk.scheduler.choose = Schedule(digits)
        try:
            process = self._process(disk.requests, message)
            if disk.events is not None:
                process = self._named(process, message.get("id"))
        except DiskError as refusal:
            done(refused(refusal))
            return
        call = object()
        left = steps
        if (cut := message.get("cut")) is not None:
            self._seed, self._cutting = cut["seed"], call
            self.power.cut_at(cut["after"])

        def ended(result: bytes | None, error: Exception | None) -> None:
            nonlocal left
            left = 0
            if self._cutting is call:
                self._cutting = None
                self.power.cut_at(None)
            if error is None:
                done({"ok": True} if result is None else {"ok": True, "data": result})
            elif isinstance(error, DiskError):
                done(refused(error))
            else:
                raise error

        disk.scheduler.start(process, ended)
        while left > 0 and self.step():
            left -= 1

    def step(self) -> bool:
        """Let one process of the engine take a step. Return False if none may go on.

        Raises PowerCut if the `cut` of a call took effect; then nothing is in flight.
        """
        disk = self._disk
        return disk is not None and disk.scheduler.step()

    def _alone(self, message: Message) -> Message:
        """Answer a request with which nothing may be in flight."""
        disk = self._disk
        self._cutting = None
        if message.get("op") != "crash" and disk is not None and disk.scheduler.in_flight:
            return refused(BadRequest(f"{message.get('op')} is sent when nothing is in flight"))
        return self.request(message)

    def _named(self, process: Process[Any], id: object) -> Process[Any]:
        """Run a process, and let the record that it submits say which request it is of."""
        try:
            while True:
                before = self.event_count()
                try:
                    effect = next(process)
                except StopIteration as end:
                    return end.value
                finally:
                    events = None if self._disk is None else self._disk.events
                    for event in (events or [])[before:]:
                        if event["event"] == "submit" and event["op"] != "open":
                            event["id"] = id
                yield effect
        finally:
            process.close()

    def _process(self, requests: Requests, message: Message) -> Process[Any]:
        """Return the process that a request asks for. Raises BadRequest."""
        match message.get("op"):
            case "write":
                return self._writing(requests, message)
            case "read":
                view = None if message.get("view") is None else text(message, "view")
                return requests.read(integer(message, "lba"), integer(message, "count"), view)
            case "unmap":
                return requests.unmap(integer(message, "lba"), integer(message, "count"))
            case "flush":
                return requests.flush()
            case "snapshot":
                return requests.snapshot(text(message, "name"))
            case "delete":
                return requests.delete(text(message, "name"))
            case "revert":
                return requests.revert(text(message, "name"))
        raise Unsupported(f"there is no operation {message.get('op')!r}")

    def _writing(self, requests: Requests, message: Message) -> Process[None]:
        lba, blocks = integer(message, "lba"), data(message)
        parts = self._parts(lba, blocks)
        yield from requests.write_many(parts) if parts else requests.write(lba, blocks)
        if message.get("fua") and self.hello["crash_profile"] != "ack":
            try:
                yield from requests.flush()
            except DiskError as error:
                raise UnknownOutcome(f"written, and not durable: {error}") from None
