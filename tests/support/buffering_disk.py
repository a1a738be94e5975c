"""An honest disk for requests that overlap, of every crash profile and both granularities."""

from collections.abc import Callable
from typing import Any

from conformance.examples.overlapping_disk import OK, Disk, Message, Steps, refused

State = tuple[list[int], dict[str, list[int]]]


class BufferingDisk(Disk):
    """The options: `profile`, `atomic` and `seed`. It keeps all states since the last flush."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.hello |= {"crash_profile": options["profile"], "atomic": options["atomic"]}
        self.by_block = options["atomic"] == "block"
        self.past: list[State] = []

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        super().call(message, done)
        self._keep()

    def step(self) -> bool:
        moved = super().step()
        self._keep()
        return moved

    def create(self, message: Message) -> Message:
        self.past = []
        return super().create(message)

    def crash(self, message: Message) -> Message:
        choose, (self.live, snaps) = self.choose.choice, self.past[-1]
        if self.hello["crash_profile"] == "prefix":
            self.live, snaps = choose(self.past)
        elif self.hello["crash_profile"] == "block":
            lives = [live for live, _ in self.past]
            self.live = [choose(values) for values in zip(*lives, strict=True)]
        self.live, self.snaps = list(self.live), dict(snaps)
        self.past = []
        return OK

    def flush(self, message: Message) -> Steps:
        yield
        self.past = []
        return OK

    restart = flush

    def revert(self, message: Message) -> Steps:
        answer = yield from super().revert(message)
        if self.hello["crash_profile"] == "block" and answer["ok"]:
            self.past = []
        return answer

    def write(self, message: Message) -> Steps:
        if not self.by_block or self.fault(message):
            return (yield from super().write(message))
        for lba, tag in enumerate(message["tags"], message["lba"]):
            yield
            self.live[lba] = tag
        yield
        return OK

    def unmap(self, message: Message) -> Steps:
        return (yield from self.write(message | {"tags": [0] * message["count"]}))

    def read(self, message: Message) -> Steps:
        if not self.by_block:
            return (yield from super().read(message))
        yield
        if error := self.fault(message):
            return refused(error)
        blocks, tags = self.snaps.get(message.get("view", ""), self.live), []
        for lba in range(message["lba"], message["lba"] + message["count"]):
            tags.append(blocks[lba])
            yield
        return OK | {"tags": tags}

    def _keep(self) -> None:
        """Remember the state, if it is another one. Under `block` snapshots are durable at once."""
        now = (list(self.live), dict(self.snaps))
        if self.past and self.past[-1] == now:
            return
        if self.past and self.hello["crash_profile"] == "block" and self.past[-1][1] != now[1]:
            self.past = []
        self.past.append(now)
