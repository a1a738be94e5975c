"""Faults of the media that begin and end on request."""

from pathlib import Path

import pytest

from refmodel.adapter.dialogue import Message
from refmodel.adapter.engine_target import Adapter
from refmodel.array.layout import PAGE

DATA = bytes(range(256)) * 2


@pytest.mark.parametrize("then", ["settle", "fail"])
def test_a_device_that_the_engine_left_after_its_fault_is_back(tmp_path: Path, then: str) -> None:
    """Its label went wrong, and an opening before the next `settle` did not know it."""
    target = Adapter(folder=tmp_path, faults="on-request", layout="mirror", block_bytes=512)

    def ask(op: str, **more: object) -> Message:
        answer = target.request({"op": op, **more})
        assert answer["ok"], (op, answer)
        return answer

    try:
        ask("create", blocks=8)
        ask("write", lba=0, data=DATA)
        ask("fail", device=0, mode="degraded", fault="misdirected-write")
        ask("return", device=0)
        for device in tmp_path.glob("*/disk/device-0"):
            with device.open("r+b") as file:
                file.write(bytes(2 * PAGE))
        ask("crash")
        if then == "fail":
            ask("fail", device=0, mode="degraded")
            ask("replace", device=0)
        assert ask("settle")["problems"] == []
        ask("fail", device=1, mode="absent")
        assert ask("read", lba=0, count=1)["data"] == DATA
    finally:
        target.close()


def test_a_device_that_goes_wrong_again_is_not_brought_back(tmp_path: Path) -> None:
    """It has returned, and vanishes before it is repaired; then it fails for good."""
    target = Adapter(folder=tmp_path, faults="on-request", layout="mirror", block_bytes=512)
    vanishing = {"op": "fail", "device": 0, "mode": "degraded", "fault": "vanishing-device"}
    try:
        assert target.request({"op": "create", "blocks": 8})["ok"]
        assert target.request(vanishing)["ok"]
        assert target.request({"op": "return", "device": 0})["ok"]
        assert target.request(vanishing)["ok"]
        for _ in range(40):  # until it has vanished
            assert target.request({"op": "write", "lba": 0, "data": DATA})["ok"]
            assert target.request({"op": "crash"})["ok"]
        target.request({"op": "fail", "device": 0, "mode": "degraded"})
        assert target.request({"op": "replace", "device": 0})["ok"]
        assert target.request({"op": "settle"})["problems"] == []
    finally:
        target.close()


def test_a_device_that_a_spare_replaced_meanwhile_is_a_spare(tmp_path: Path) -> None:
    """It vanished, was rebuilt on the spare by a `settle`, and then its fault ended."""
    target = Adapter(folder=tmp_path, faults="on-request", repair_timer=0, spares=1)
    try:
        assert target.request({"op": "create", "blocks": 8})["ok"]
        fails = {"op": "fail", "device": 0, "mode": "degraded", "fault": "vanishing-device"}
        assert target.request(fails)["ok"]
        for _ in range(40):  # until it has vanished
            assert target.request({"op": "write", "lba": 0, "data": 8 * DATA})["ok"]
            assert target.request({"op": "crash"})["ok"]
        assert target.request({"op": "settle"})["ok"]
        back = target.request({"op": "return", "device": 0})
        assert {"event": "return", "device": 0, "state": "spare"} in back["events"]
        assert target.request({"op": "settle"})["problems"] == []
    finally:
        target.close()


def test_what_a_device_with_a_fault_has_wrong_again_is_not_beyond_repair(tmp_path: Path) -> None:
    """Another device has returned. `settle` repairs both, and one of them goes wrong again."""
    for seed in range(12):
        target = Adapter(folder=tmp_path, faults="on-request", layout="raid6-4+2", fault_seed=seed)
        wrong = {"op": "fail", "mode": "degraded"}
        try:
            assert target.request({"op": "create", "blocks": 8})["ok"]
            for device, fault in ((0, "misdirected-write"), (5, "lost-write")):
                assert target.request({**wrong, "device": device, "fault": fault})["ok"]
            for _ in range(20):
                assert target.request({"op": "write", "lba": 0, "data": DATA * 8})["ok"]
                assert target.request({"op": "crash"})["ok"]
            assert target.request({"op": "return", "device": 5})["ok"]
            assert target.request({"op": "settle"})["problems"] == []
        finally:
            target.close()
