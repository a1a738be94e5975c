"""Another process as a target: what is sent when."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.targets.base import PowerCut, TargetFailure
from conformance.targets.process import ProcessTarget

OVERLAPPING = "python3 conformance/examples/overlapping_disk.py"


def test_a_request_that_is_held_back_goes_together_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = ProcessTarget(OVERLAPPING)
    try:
        assert target.request({"op": "create", "blocks": 4})["ok"]
        sent: list[bytes] = []

        def write(handle: int, data: bytes) -> int:
            sent.append(data)
            return written(handle, data)

        written = os.write
        monkeypatch.setattr(os, "write", write)
        target.call(0, {"op": "flush", "schedule": 0o11})
        assert sent == []
        target.call(1, {"op": "flush", "schedule": 0o14})
        assert [data.count(b"\n") for data in sent] == [2]
        target.call(2, {"op": "flush", "schedule": 0o10})
        answers = [target.answer(10) for _ in range(3)]  # to wait sends what was held back
        assert sorted(answer[0] for answer in answers if answer) == [0, 1, 2]
    finally:
        target.close()


CUTTING = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {"ok": True, "id": request.get("id")}
    if request["op"] == "hello":
        answer = {"ok": True, "block_size": 512, "crash_profile": "ack", "capabilities": ["crash"],
                  "payload": "tags", "protocol": 2, "in_flight": 2, "cuts": True}
    elif "cut" in request or request["op"] == "flush":
        answer |= {"ok": False, "error": "power-cut"}
    print(json.dumps(answer), flush=True)
"""
CUT_WRITE = {"op": "write", "lba": 0, "tags": [1], "cut": {"after": 1, "seed": 0}}


@pytest.fixture
def cutting(tmp_path: Path) -> Iterator[ProcessTarget]:
    """A process whose power fails in each request with a `cut`, and in each flush."""
    script = tmp_path / "cutting.py"
    script.write_text(CUTTING)
    target = ProcessTarget(f"python3 {script}")
    yield target
    target.close()


def test_a_power_cut_that_was_asked_for_ends_the_request(cutting: ProcessTarget) -> None:
    assert cutting.cuts
    with pytest.raises(PowerCut):
        cutting.request(CUT_WRITE)
    assert cutting.request({"op": "crash"}) == {"ok": True}


def test_a_power_cut_that_nobody_asked_for_is_a_failure(cutting: ProcessTarget) -> None:
    with pytest.raises(TargetFailure, match="the request has no `cut`"):
        cutting.request({"op": "flush"})


def test_a_crash_in_flight_ends_what_the_power_cut_ended(cutting: ProcessTarget) -> None:
    cutting.call(0, CUT_WRITE)
    cutting.call(1, {"op": "crash"})
    assert cutting.answer(10) == (1, {"ok": True})
    cutting.cut()
    cutting.call(2, CUT_WRITE)
    with pytest.raises(PowerCut):
        cutting.answer(10)
