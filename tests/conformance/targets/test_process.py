"""Another process as a target: what is sent when."""

import os

import pytest

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
        target.call(0, {"op": "flush", "schedule": 0o13})
        assert sent == []
        target.call(1, {"op": "flush", "schedule": 0o14})
        assert [data.count(b"\n") for data in sent] == [2]
        target.call(2, {"op": "flush", "schedule": 0o10})
        answers = [target.answer(10) for _ in range(3)]  # to wait sends what was held back
        assert sorted(answer[0] for answer in answers if answer) == [0, 1, 2]
    finally:
        target.close()
