"""Disks that are right with one request in flight, and wrong in one way with several.

It has more than 300 lines because it is a list of small classes.
"""

from collections.abc import Callable

from conformance.examples.overlapping_disk import OK, Disk, Message, Steps, refused

WRONG: dict[str, type[Disk]] = {}


def wrong(disk: type[Disk]) -> type[Disk]:
    """Register a wrong disk by its class name."""
    WRONG[disk.__name__] = disk
    return disk


@wrong
class SnapshotInTwoHalves(Disk):
    """A snapshot copies its blocks in two steps."""

    def snapshot(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        half = len(self.live) // 2
        copy = self.live[:half]
        yield
        self.snaps[message["name"]] = copy + self.live[half:]
        return OK


@wrong
class SnapshotOfAnOldRoot(Disk):
    """A snapshot takes the root that was current when it was called, though others were
    answered.
    """

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        if message["op"] == "snapshot":
            message = message | {"root": list(self.before)}
        super().call(message, done)

    def create(self, message: Message) -> Message:
        self.before = [0] * message["blocks"]
        return super().create(message)

    def write(self, message: Message) -> Steps:
        self.before = list(self.live)
        return (yield from super().write(message))

    def snapshot(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        busy = len(self.flying) > 1
        self.snaps[message["name"]] = message["root"] if busy else list(self.live)
        return OK


@wrong
class SnapshotNamedBeforeItIsTaken(Disk):
    """The name of a snapshot can be read before its content is fixed: it shows the live disk."""

    def snapshot(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        self.snaps[message["name"]] = self.live
        yield
        self.snaps[message["name"]] = list(self.live)
        return OK


@wrong
class WriteInTwoSteps(Disk):
    """A write of several blocks takes effect block by block."""

    def write(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        for lba, tag in enumerate(message["tags"], message["lba"]):
            self.live[lba] = tag
            yield
        return OK


@wrong
class ReadInTwoSteps(Disk):
    """A read of several blocks reads them at different times."""

    def read(self, message: Message) -> Steps:
        yield
        lba, count, view = message["lba"], message["count"], message.get("view")
        if error := self.fault(message):
            return refused(error)
        tags = []
        for at in range(lba, lba + count):
            tags.append((self.live if view is None else self.snaps.get(view, self.live))[at])
            yield
        return OK | {"tags": tags}


@wrong
class WriteAcknowledgedEarly(Disk):
    """A write is answered before it takes effect, if others are in flight."""

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        super().call(message, done)
        if message["op"] == "write" and len(self.flying) > 1 and not self.fault(message):
            done(OK)
            self.flying[-1][1] = lambda response: None


@wrong
class LostNeighbour(Disk):
    """A write reads the block beside it and writes both back: an update in between is lost."""

    def write(self, message: Message) -> Steps:
        yield
        lba, tags = message["lba"], message["tags"]
        end = lba + len(tags)
        if error := self.fault(message):
            return refused(error)
        beside = self.live[end : end + 1]
        yield
        self.live[lba : end + len(beside)] = tags + beside
        return OK


@wrong
class StaleCacheFill(Disk):
    """A read fills the cache after a write has passed it."""

    def create(self, message: Message) -> Message:
        self.cache: dict[int, int] = {}
        return super().create(message)

    def write(self, message: Message) -> Steps:
        answer = yield from super().write(message)
        for lba in range(message["lba"], message["lba"] + len(message["tags"])):
            self.cache.pop(lba, None)
        return answer

    def unmap(self, message: Message) -> Steps:
        self.cache.clear()
        answer = yield from super().unmap(message)
        self.cache.clear()
        return answer

    def revert(self, message: Message) -> Steps:
        self.cache.clear()
        answer = yield from super().revert(message)
        self.cache.clear()
        return answer

    def read(self, message: Message) -> Steps:
        answer = yield from super().read(message)
        if answer["ok"] and message.get("view") is None:
            lbas = range(message["lba"], message["lba"] + message["count"])
            answer["tags"] = [
                self.cache.get(at_lba, t) for at_lba, t in zip(lbas, answer["tags"], strict=True)
            ]
            yield
            self.cache |= dict(zip(lbas, answer["tags"], strict=True))
        return answer


@wrong
class UnmapPassesWrite(Disk):
    """An unmap waits for other requests and takes effect after a write that was called later."""

    def create(self, message: Message) -> Message:
        self.later: Message | None = None
        return super().create(message)

    def unmap(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        if len(self.flying) > 1:
            self.later = message
            return OK
        self.live[message["lba"] : message["lba"] + message["count"]] = [0] * message["count"]
        return OK

    def write(self, message: Message) -> Steps:
        answer = yield from super().write(message)
        late, self.later = self.later, None
        if late and late["lba"] + late["count"] <= len(self.live):
            self.live[late["lba"] : late["lba"] + late["count"]] = [0] * late["count"]
        return answer


@wrong
class DeleteUnderARead(Disk):
    """A read of a snapshot goes on after the snapshot was deleted, and returns the live disk."""

    def read(self, message: Message) -> Steps:
        view = message.get("view")
        if view is None:
            return (yield from super().read(message))
        yield
        if error := self.fault(message):
            return refused(error)
        yield
        blocks = self.snaps.get(view, self.live)
        return OK | {"tags": blocks[message["lba"] : message["lba"] + message["count"]]}


@wrong
class RevertInTwoHalves(Disk):
    """A revert replaces the live disk in two steps."""

    def revert(self, message: Message) -> Steps:
        yield
        if error := self.fault(message):
            return refused(error)
        copy, half = list(self.snaps[message["name"]]), len(self.live) // 2
        self.live[:half] = copy[:half]
        yield
        self.live[half:] = copy[half:]
        return OK


@wrong
class AnswersExchanged(Disk):
    """Two reads in flight together get each other's answers if they have the same length."""

    def read(self, message: Message) -> Steps:
        answer = yield from super().read(message)
        if answer["ok"]:
            other = getattr(self, "waiting", None)
            if other and len(other["tags"]) == len(answer["tags"]) and len(self.flying) > 2:
                answer["tags"], other["tags"] = other["tags"], answer["tags"]
            self.waiting: Message | None = answer
            yield
            self.waiting = None
        return answer


@wrong
class GroupAcknowledgedEarly(Disk):
    """Writes of a group are answered before the group is durable: a power cut takes them back."""

    def create(self, message: Message) -> Message:
        self.durable = [0] * message["blocks"]
        return super().create(message)

    def write(self, message: Message) -> Steps:
        answer = yield from super().write(message)
        if len(self.flying) == 1:
            self.durable = list(self.live)
        return answer

    def crash(self, message: Message) -> Message:
        if self.flying_at_crash:
            self.live[:] = self.durable
        self.durable = list(self.live)
        return OK

    def flush(self, message: Message) -> Steps:
        self.durable = list(self.live)
        return (yield from super().flush(message))

    def snapshot(self, message: Message) -> Steps:
        self.durable = list(self.live)
        return (yield from super().snapshot(message))

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        self.flying_at_crash = bool(self.flying)
        super().call(message, done)


@wrong
class CutWriteComesBack(Disk):
    """A write that was in flight at a power cut takes effect some time after recovery."""

    def create(self, message: Message) -> Message:
        self.left: list[Message] = []
        return super().create(message)

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        if message["op"] == "crash":
            self.left = [entry[2] for entry in self.flying if len(entry) > 2]
        super().call(message, done)
        if message["op"] == "write":
            self.flying[-1].append(message)

    def read(self, message: Message) -> Steps:
        answer = yield from super().read(message)
        for late in self.left:
            if late["lba"] + len(late["tags"]) <= len(self.live):
                self.live[late["lba"] : late["lba"] + len(late["tags"])] = late["tags"]
        self.left = []
        return answer


@wrong
class ReadOfWhatIsNotDurable(Disk):
    """A read shows a write that is in flight, and a power cut then takes the write back."""

    def create(self, message: Message) -> Message:
        self.undo: list[tuple[int, list[int]]] = []
        return super().create(message)

    def write(self, message: Message) -> Steps:
        yield
        lba, tags = message["lba"], message["tags"]
        if error := self.fault(message):
            return refused(error)
        change = (lba, self.live[lba : lba + len(tags)])
        self.live[lba : lba + len(tags)] = tags
        self.undo.append(change)
        yield
        yield
        self.undo.remove(change)
        return OK

    def crash(self, message: Message) -> Message:
        for lba, tags in reversed(self.undo):
            self.live[lba : lba + len(tags)] = tags
        self.undo.clear()
        return OK


@wrong
class NameTakenTwice(Disk):
    """Two snapshots of one name, called together, are both acknowledged."""

    def snapshot(self, message: Message) -> Steps:
        free = not self.fault(message)
        yield
        if not free:
            return (yield from super().snapshot(message))
        yield
        self.snaps[message["name"]] = list(self.live)
        return OK
