"""A target that loses a block of a small disk after some crashes: only some traces reach it."""

from conformance.targets.base import Message
from conformance.targets.model import ModelTarget


class Loses(ModelTarget):
    """From the 13th power cut of a trace on, block 3 of 8 to 10 blocks reads as zeroes in
    snapshots.
    """

    knobs = {"profile": ["ack", "prefix"]}

    def request(self, message: Message) -> Message:
        answer = super().request(message)
        if message["op"] == "create":
            self._crashes, self._blocks = 0, message["blocks"]
        if message["op"] == "crash":
            self._crashes += 1
        if (
            self._crashes > 12
            and 8 <= self._blocks <= 10
            and message["op"] == "read"
            and "view" in message
            and answer["ok"]
            and message["lba"] <= 3 < message["lba"] + message["count"]
        ):
            answer["tags"][3 - message["lba"]] = 0
        return answer
