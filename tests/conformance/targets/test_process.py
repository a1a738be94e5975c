"""Another process as a target: what is sent when."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import targets
from conformance.campaign.driver import Bench, drive
from conformance.targets import process
from conformance.targets.base import PowerCut, TargetFailure, Unusable
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


def test_an_answer_that_came_is_known_without_waiting() -> None:
    target = ProcessTarget(OVERLAPPING)
    try:
        target.call(0, {"op": "create", "blocks": 4})
        deadline = time.monotonic() + 10
        while not target.answered() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert target.answered()
    finally:
        target.close()


TALKATIVE = """
import base64, json, sys
asked = open(sys.argv[1], "w")
for line in sys.stdin:
    request = json.loads(line)
    asked.write(line)
    asked.flush()
    answer = {"ok": True, "error": None, "message": None, "data": None, "found": "much", "ms": 1.5}
    if request["op"] == "hello":
        answer |= {"block_size": 512, "crash_profile": None, "capabilities": [], "devices": None}
        answer |= {"protocol": 2}
    elif request["op"] == "read":
        answer["data"] = base64.b64encode(bytes(512 * request["count"])).decode()
    elif request["op"] == "bye":
        break
    print(json.dumps({**answer, "id": request.get("id")}), flush=True)
"""


def test_fields_that_are_null_or_unknown_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    target = ProcessTarget(f"{sys.executable} {tmp_path}/talkative.py {tmp_path}/asked")
    assert target.hello["crash_profile"] is None and "devices" not in target.hello
    program = [{"op": "create", "blocks": 2}, {"op": "read", "lba": 0, "count": 2}]
    trace = drive(target, program)
    target.close()
    assert [event["result"] for event in trace.events] == [
        {"ok": True},
        {"ok": True, "tags": [0, 0]},
    ]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[-1] == '{"op": "bye", "id": 2}'  # it is numbered, as all that hello began


def test_the_limit_of_an_answer_holds_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    target = ProcessTarget(f"{sys.executable} {tmp_path}/talkative.py {tmp_path}/asked")
    monkeypatch.setattr(process, "LONGEST_ANSWER", 180_000)
    try:
        for number in range(3):  # 175 kB each, in base64
            target.call(number, {"op": "read", "lba": number, "count": 256})
        assert target._receive_lines(10, 3)
        answers = [target.answer(10) for _ in range(3)]
        assert [len(one["data"]) for _, one in filter(None, answers)] == [256 * 512] * 3
        target.call(3, {"op": "read", "lba": 0, "count": 512})
        with pytest.raises(TargetFailure, match="longer than"):
            target.answer(10)
    finally:
        target.close()


def test_a_refused_hello_is_shown(tmp_path: Path) -> None:
    answer = '{"ok":false,"error":"unsupported","message":"no licence"}'
    (tmp_path / "refuses.sh").write_text(f"read hello\necho '{answer}'\n")
    with pytest.raises(Unusable, match="it refused.*no licence"):
        ProcessTarget(f"sh {tmp_path}/refuses.sh")


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [("run", "--jobs", "1"), ("doctor",)], ids=lambda one: one[0])
def test_an_interrupt_during_hello_leaves_nothing_running(
    command: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    silent = f"sh -c 'echo $$ >{tmp_path}/new; mv {tmp_path}/new {started}; exec sleep 60'"
    words = [sys.executable, "-m", "conformance", *command, "--target", f"exec:{silent}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as kit:
        deadline = time.monotonic() + 30
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        target = int(started.read_text())
        time.sleep(0.2)  # the kit waits for the answer by now
        kit.send_signal(number)
        output, _ = kit.communicate(timeout=30)
    assert kit.returncode == 130 and b"interrupted" in output, output
    try:
        with pytest.raises(ProcessLookupError):
            os.kill(target, 0)
    finally:
        with suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)


def test_an_invalid_hello_leaves_nothing_running(tmp_path: Path) -> None:
    """Not either where capabilities are left out, so that hello is looked at while it opens."""
    script = tmp_path / "no_hello.sh"
    script.write_text(f"echo $$ >{tmp_path}/pid\nread hello\necho '{{}}'\nsleep 60\n")
    factory = replace(targets.resolve(f"exec:sh {script}"), without=frozenset(["unmap"]))
    with pytest.raises(Unusable, match="invalid answer to hello"):
        factory({})
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_answer_too_many_is_the_fault_of_the_last_operation(tmp_path: Path) -> None:
    """Not of the next trace, whose first answer it would be."""
    script = tmp_path / "twice.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    answer = {'ok': True, 'block_size': 512, 'crash_profile': None, 'capabilities': []}\n"
        "    for _ in range(2 if request['op'] == 'write' else 1):\n"
        "        print(json.dumps(answer), flush=True)\n"
    )
    bench = Bench(targets.resolve(f"exec:{sys.executable} {script}"))
    create = {"op": "create", "blocks": 1}
    try:
        failed = bench.drive([create, {"op": "write", "lba": 0, "tags": [1]}], 1, {})
        said = failed.events[-1]["failure"]
        assert (said["kind"], failed.events[-1]["result"]) == ("protocol", None)
        assert said["message"].startswith("it printed what nobody asked for: ")
        assert "failure" not in bench.drive([create], 1, {}).events[-1]
    finally:
        bench.clear()


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("closes", [True, False])
def test_an_end_behind_the_last_answer_is_told_as_one(
    tmp_path: Path, protocol: int, closes: bool
) -> None:
    """Of the trace that it ends, if its stdout closes in time; else the next one says so."""
    script = tmp_path / "ends.py"
    script.write_text(
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    answer = {'ok': True, 'block_size': 512, 'crash_profile': None, 'capabilities': []}\n"
        f"    answer |= {{'protocol': {protocol}}} if request['op'] == 'hello' else {{}}\n"
        "    answer |= {'id': request['id']} if 'id' in request else {}\n"
        "    os.write(1, json.dumps(answer).encode() + b'\\n')\n"
        "    if request['op'] == 'write':\n"
        f"        {'os._exit(3)' if closes else 'time.sleep(0.3); sys.exit(3)'}\n"
    )
    bench = Bench(targets.resolve(f"exec:{sys.executable} {script}"))
    create, write = {"op": "create", "blocks": 1}, {"op": "write", "lba": 0, "tags": [1]}
    try:
        ended = bench.drive([create, write], 1, {})
        words = " after its last answer"
        if "failure" not in ended.events[-1]:
            ended, words = bench.drive([create], 1, {}), "; the trace before may be the cause"
        failure = ended.events[-1]["failure"]
        assert failure["kind"] == "exit"
        assert failure["message"].startswith("it exited with status 3")
        assert failure["message"].endswith(words)
        assert "failure" not in bench.drive([create], 1, {}).events[-1]
    finally:
        bench.clear()


SIZED = """
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    a = {"ok": True}
    if q["op"] == "hello":
        a |= {"block_size": 512, "crash_profile": None, "capabilities": [], "knobs": KNOBS}
    elif q["op"] == "create":
        created = q
    elif q["op"] == "stats":
        a["counters"] = created.get("options", {})
    print(json.dumps(a), flush=True)
"""


def sized(tmp_path: Path, knobs: object) -> targets.Factory:
    """Return the factory of a process with knobs, whose counters are the options of its disk."""
    script = tmp_path / "sized.py"
    script.write_text(SIZED.replace("KNOBS", repr(knobs)))
    return targets.resolve(f"exec:python3 {script}")


def test_each_trace_chooses_options_that_a_process_lists(tmp_path: Path) -> None:
    bench = Bench(sized(tmp_path, {"cache": [1, 8], "log": [12]}))
    try:
        assert bench.usual == {}  # nothing is known before the process was opened
        chosen, processes = [], set()
        for seed in range(8):
            options = bench.draw(random.Random(seed))
            bench.drive([{"op": "create", "blocks": 1}], 0, options)
            assert bench.counters() == options
            chosen.append(options["cache"])
            processes.add(id(bench.on(options)))
        assert set(chosen) == {1, 8} and len(processes) == 1  # it is not started again
        assert bench.usual == {"cache": 1, "log": 12}
        bench.drive([{"op": "create", "blocks": 1}], 0, {"fanout": 3})
        assert bench.counters() == {}  # an option of another target
        with pytest.raises(Unusable, match="not asked to refuse options"):
            bench.drive([{"op": "create", "blocks": 1}], 0, {"impossible": "log", "log": 0})
    finally:
        bench.clear()


def test_a_class_of_processes_is_opened_again_for_other_options(tmp_path: Path) -> None:
    """Its options say how the process is started."""
    script = tmp_path / "sized.py"
    script.write_text(SIZED.replace("KNOBS", "{}"))
    opened = []

    def build(options: dict[str, Any]) -> ProcessTarget:
        opened.append(options)
        return ProcessTarget(f"python3 {script}")

    bench = Bench(targets.Factory("class", build, knobs={"trees": [False, True]}))
    try:
        for trees in (False, True):
            bench.drive([{"op": "create", "blocks": 1}], 0, {"trees": trees})
        assert opened == [{"trees": False}, {"trees": True}]
    finally:
        bench.clear()


@pytest.mark.parametrize("knobs", [[], {"cache": []}, {"cache": [[]]}, {"impossible": [1]}])
def test_knobs_that_nobody_can_draw_are_no_hello(tmp_path: Path, knobs: object) -> None:
    bench = Bench(sized(tmp_path, knobs))
    try:
        with pytest.raises(Unusable, match="invalid answer to hello"):
            bench.draw(random.Random(0))
    finally:
        bench.clear()


WAITING = """
import json, sys
waits = 0
for line in sys.stdin:
    q = json.loads(line)
    a = {"ok": True, "tags": [0], "id": q.get("id")}
    if q["op"] == "hello":
        a |= {"block_size": 512, "crash_profile": None, "capabilities": [], "payload": "tags"}
        a |= {"protocol": 2, "in_flight": 2, "waits": WAITS}
    elif q["op"] == "stats":
        a["counters"] = {"waits": waits}
    waits += q.get("wait", 0)
    print(json.dumps(a), flush=True)
"""


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("together", [{}, {"overlaps": 1}])
def test_a_request_waits_only_where_the_target_takes_that(
    tmp_path: Path, waits: bool, together: dict[str, int]
) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.replace("WAITS", str(waits)))
    bench = Bench(targets.resolve(f"exec:python3 {script}"))
    read = {"op": "read", "lba": 0, "count": 1}
    try:
        program = [{"op": "create", "blocks": 1}, {**read, "wait": 1}, {**read, **together}]
        trace = bench.drive(program, 0, {})
        assert bench.counters() == {"waits": int(waits)}
        assert [event.get("wait") for event in trace.events] == [None, 1 if waits else None, None]
    finally:
        bench.clear()


NOTING = """
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    a = {"ok": True, "id": q.get("id")}
    if q["op"] == "hello":
        a |= {"block_size": 512, "crash_profile": None, "capabilities": [], "payload": "tags"}
        a |= {"protocol": PROTOCOL, "in_flight": 2}
    elif q["op"] == "read":
        print("page 7 is damaged", file=sys.stderr, flush=True)
        a |= {"ok": False, "error": "io-error"}
    print(json.dumps(a), flush=True)
"""


@pytest.mark.parametrize(("protocol", "together"), [(1, {}), (2, {}), (2, {"overlaps": 1})])
def test_an_invalid_answer_is_recorded_with_what_was_printed_last(
    tmp_path: Path, protocol: int, together: dict[str, int]
) -> None:
    script = tmp_path / "noting.py"
    script.write_text(NOTING.replace("PROTOCOL", str(protocol)))
    bench = Bench(targets.resolve(f"exec:{sys.executable} {script}"))
    try:
        read = {"op": "read", "lba": 0, "count": 1, **together}
        failure = bench.drive([{"op": "create", "blocks": 1}, read], 0, {}).events[-1]["failure"]
        assert (failure["kind"], failure["output"]) == ("protocol", "page 7 is damaged\n")
    finally:
        bench.clear()
