"""A target that loses block 100 in its sixth crash: a failure that only some traces reach."""

from conformance.targets.model import ModelTarget


class Loses(ModelTarget):
    """From the sixth power cut of a trace on, block 100 of a disk that has one reads as zeroes."""

    knobs = {"profile": ["ack", "prefix"]}

    def request(self, message):
        answer = super().request(message)
        if message["op"] == "create":
            self._crashes = 0
        if message["op"] == "crash":
            self._crashes += 1
        if (
            self._crashes > 5
            and message["op"] == "read"
            and answer["ok"]
            and message["lba"] <= 100 < message["lba"] + message["count"]
        ):
            answer["tags"][100 - message["lba"]] = 0
        return answer
