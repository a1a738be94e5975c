"""What a careless caller sends is refused: the adapter goes on, and prints no traceback."""

import json
import subprocess
import sys
from typing import Any

import pytest

HELLO = {"op": "hello", "protocol": 2}
CREATE = {"op": "create", "blocks": 4, "id": 0}


def answers(*requests: Any) -> list[dict[str, Any]]:
    lines = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in requests)
    done = subprocess.run(
        [sys.executable, "-m", "refmodel", "adapter"], input=lines, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("protocol", ["2", None, 1.5])
def test_a_hello_that_does_not_ask_for_version_2_gets_version_1(protocol: Any) -> None:
    hello, create = answers({"op": "hello", "protocol": protocol}, {"op": "create", "blocks": 4})
    assert "protocol" not in hello and hello["ok"] and create["ok"] and "id" not in create


def test_what_is_no_request_is_refused() -> None:
    refused, created = answers("[" * 100_000, {"op": "create", "blocks": 4})
    assert refused["error"] == "bad-request" and created["ok"]


def test_a_request_is_utf_8() -> None:
    lines = b"\xff\xfe\n" + json.dumps(CREATE).encode("utf-16") + b"\n"
    words = [sys.executable, "-m", "refmodel", "adapter"]
    done = subprocess.run(words, input=lines, capture_output=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert not done.stderr and {one["message"] for one in told} == {"a request must be UTF-8"}


@pytest.mark.parametrize("wrong", ["x", [1], None])
def test_an_id_has_to_be_an_integer(wrong: Any) -> None:
    _, _, refused, last = answers(
        HELLO, CREATE, {"op": "flush", "id": wrong}, {"op": "flush", "id": 1}
    )
    assert refused["error"] == "bad-request" and "id" not in refused
    assert last == {"ok": True, "id": 1}


def test_a_refusal_of_data_carries_the_id() -> None:
    write = {"op": "write", "lba": 0, "data": "!!", "id": 1}
    refused = answers(HELLO, CREATE, write)[2]
    assert (refused["error"], refused["id"]) == ("bad-request", 1)


def test_an_id_in_flight_is_not_taken_again() -> None:
    flush = {"op": "flush", "id": 1}
    found = answers(HELLO, CREATE, flush, flush)[2:]
    assert sorted(one.get("error", "ok") for one in found) == ["bad-request", "ok"]


def test_the_repair_clock_does_not_go_back() -> None:
    refused, on = answers(
        HELLO,
        CREATE,
        {"op": "tick", "seconds": -1, "id": 1},
        {"op": "tick", "seconds": 0, "id": 2},
    )[2:]
    assert refused["error"] == "bad-request" and on["ok"]
