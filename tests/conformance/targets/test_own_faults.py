"""A mirror of a stranger offers faults of its devices: a repair that it leaves out is found."""

from typing import Any
from zlib import crc32

import pytest

from conformance.campaign.random_campaign import campaign
from conformance.judging import oracles
from conformance.targets import Factory

OK = {"ok": True}


class Mirror:
    """Two copies of each block, and a checksum of it apart from them."""

    hello = {
        "block_size": 512,
        "crash_profile": None,
        "capabilities": ["device"],
        "devices": 2,
        "tolerates": 1,
        "payload": "tags",
        "faults": ["lost-write", "garbage"],
    }

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["op"]:
            case "create":
                self.copies = [[0] * message["blocks"] for _ in range(2)]
                self.sums = [checksum(0)] * message["blocks"]
                self.gone: set[int] = set()
                self.faults: dict[int, str] = {}
                self.unsettled: set[int] = set()  # devices, since one was gone or had a fault
            case "write" | "read" as op:
                first = message["lba"]
                end = first + (len(message["tags"]) if op == "write" else message["count"])
                if end > len(self.sums):
                    return {"ok": False, "error": "out-of-range"}
                if op == "read":
                    return {"ok": True, "tags": [self.good(lba) for lba in range(first, end)]}
                for lba, tag in enumerate(message["tags"], first):
                    self.write(lba, tag)
            case "fail":
                return self.fail(message["device"], message.get("fault"))
            case "return":
                self.come_back(message["device"])
            case "replace" if self.unsettled - {message["device"]}:
                return {"ok": False, "error": "bad-request"}  # nothing else has the data
            case "replace":
                self.unsettled.add(message["device"])
                self.copies[message["device"]] = [-1] * len(self.sums)
                self.come_back(message["device"])
            case "settle":
                self.settle()
                self.unsettled = self.gone | self.faults.keys()
        return OK

    def good(self, lba: int) -> int:
        return next(
            copy[lba]
            for device, copy in enumerate(self.copies)
            if device not in self.gone and checksum(copy[lba]) == self.sums[lba]
        )

    def write(self, lba: int, tag: int) -> None:
        self.sums[lba] = checksum(tag)
        for device in {0, 1} - self.gone:
            fault = self.faults.get(device)
            if fault != "lost-write":
                self.copies[device][lba] = 10**6 if fault else tag

    def fail(self, device: int, fault: str | None) -> dict[str, Any]:
        if self.unsettled - {device}:
            return {"ok": False, "error": "bad-request"}
        self.unsettled.add(device)
        if fault is None:
            self.gone.add(device)
        else:
            self.faults[device] = fault
        return OK

    def come_back(self, device: int) -> None:
        self.gone.discard(device)
        self.faults.pop(device, None)

    def settle(self) -> None:
        for lba in range(len(self.sums)):
            good = self.good(lba)
            for device in {0, 1} - self.gone - self.faults.keys():
                self.copies[device][lba] = good

    def close(self) -> None:
        pass


def checksum(tag: int) -> int:
    return crc32(str(tag).encode())


class RepairsWhatWasGone(Mirror):
    def come_back(self, device: int) -> None:
        if device in self.faults:
            self.unsettled.discard(device)
        super().come_back(device)

    def settle(self) -> None:
        if self.unsettled:
            super().settle()


class TrustsAFaultyDevice(Mirror):
    def good(self, lba: int) -> int:
        if 0 in self.faults:
            return self.copies[0][lba]
        return super().good(lba)


@pytest.mark.parametrize(
    "target, verdict",
    [(Mirror, "pass"), (RepairsWhatWasGone, "fail"), (TrustsAFaultyDevice, "fail")],
)
def test_a_target_that_offers_faults(target: type[Mirror], verdict: str) -> None:
    factory = Factory("python:mirror", lambda _: target())
    judges = {"model": oracles.named("model")}
    result = campaign(factory, count=100, ops=30, seed=1, oracles=judges, most_failures=1)
    assert result.verdict == verdict
    if verdict == "fail":
        assert any("fault" in event for event in result.failures[0].trace.events)
