"""Any bytes, in a trace file or from a target, give a verdict or one line: never a traceback."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.campaign.driver import drive
from conformance.cli import main
from conformance.contract import trace as traces
from conformance.contract.trace import Event
from conformance.judging.judge import judge
from conformance.judging.oracles import named
from conformance.selftest.overlapping_histories import history
from conformance.targets.base import Message
from conformance.targets.model import ModelTarget
from conformance.targets.process import ProcessTarget

MODEL = {"model": named("model")}
PROGRAM: list[Message] = [
    {"op": "create", "blocks": 4},
    {"op": "write", "lba": 1, "tags": [1, 2]},
    {"op": "snapshot", "name": "s"},
    {"op": "unmap", "lba": 1, "count": 1},
    {"op": "flush"},
    {"op": "crash", "kept": [1, 0]},
    {"op": "read", "lba": 0, "count": 4},
    {"op": "read", "lba": 0, "count": 4, "view": "s"},
    {"op": "revert", "name": "s"},
    {"op": "delete", "name": "s"},
]
LOOSE = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

numbers = st.one_of(
    st.integers(-3, 5), st.integers(), st.just(2**63), st.just(10**400), st.floats()
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """The lines of a sound trace, and a place for damaged ones."""
    folder = tmp_path_factory.mktemp("fuzz")
    traces.write(drive(ModelTarget({"profile": "block"}), PROGRAM, 7), folder / "sound.jsonl")
    return (folder / "sound.jsonl").read_bytes(), folder / "damaged.jsonl"


def read_or_refused(path: Path) -> None:
    try:
        trace = traces.read(path)
    except traces.BadTrace as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error) and len(str(error)) < 600
        return
    verdict = judge([trace], MODEL)[0]
    assert verdict.verdict in ("pass", "fail", "inconclusive")
    assert verdict.words(trace) and traces.numbered(trace.events)


@LOOSE
@given(st.data())
def test_damaged_bytes(sound: tuple[bytes, Path], data: st.DataObject) -> None:
    content, path = sound
    at = data.draw(st.integers(0, len(content)))
    gone, new = data.draw(st.integers(0, 60)), data.draw(st.binary(max_size=20))
    path.write_bytes(content[:at] + new + content[at + gone :])
    read_or_refused(path)


@LOOSE
@given(st.data())
def test_wrong_values(sound: tuple[bytes, Path], data: st.DataObject) -> None:
    """Sound JSON, with a value of a line replaced by anything."""
    content, path = sound
    lines = [json.loads(line) for line in content.splitlines()]
    place = data.draw(st.sampled_from(lines))
    if isinstance(place.get("result"), dict) and data.draw(st.booleans()):
        place = place["result"]
    place[data.draw(st.sampled_from([*place, "cut", "kept", "events", "view", "surplus"]))] = (
        data.draw(anything)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    read_or_refused(path)


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "empty"),
        (b"\xff\xfe\n", "not UTF-8"),
        (b"[" * 200_000 + b"\n", "nested too deeply"),
        (b'{"trace":' + b"9" * 100_000 + b"}\n", "not JSON"),
        (b'{"a":"' + b"x" * (9 << 20) + b'"}\n', "longer than 8 MiB"),
        (b'{"trace":NaN}\n', "NaN"),
        (b'{"trace":1}', "cut off"),
        (b"\x00" * 4096, ":1:"),
    ],
)
def test_hostile_files_are_one_line_and_status_three(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(content)
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 3 and says in result.output and "Traceback" not in result.output
    assert len(result.output.splitlines()) == 2, "the complaint, and the summary"


ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "bye":
        break
    hello = b'{"ok":true,"block_size":512,"crash_profile":null,"capabilities":[]}'
    answer = hello if request["op"] == "hello" else bytes.fromhex(request["name"])
    sys.stdout.buffer.write(answer + b"\\n")
    sys.stdout.buffer.flush()
"""


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bytes], Event]]:
    """Makes a target answer with these bytes, through the driver; the event that records it."""
    script = tmp_path_factory.mktemp("fuzz") / "echo.py"
    script.write_text(ECHO)
    opened: list[ProcessTarget] = []

    class Sent:
        """The target, with what it is to answer smuggled into the request."""

        hello: Message = {"block_size": 512, "crash_profile": None, "capabilities": []}

        def __init__(self, answer: bytes) -> None:
            self.answer = answer

        def request(self, message: Message) -> Message:
            if message["op"] == "create":
                return {"ok": True}
            if not opened:
                opened.append(ProcessTarget(f"{sys.executable} {script}", patience=5.0))
            return opened[0].request({**message, "name": self.answer.hex()})

        def close(self) -> None:
            pass

    def asked(answer: bytes) -> Event:
        event = drive(Sent(answer), [PROGRAM[0], {"op": "read", "lba": 0, "count": 1}]).events[-1]
        if "failure" in event:
            opened.pop().close()
        return event

    yield asked
    while opened:
        opened.pop().close()


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.binary(max_size=60),
        anything.map(lambda value: json.dumps(value).encode()),
        st.fixed_dictionaries(
            {"ok": anything},
            optional={
                "data": anything,
                "error": anything,
                "message": anything,
                "tags": anything,
                "events": anything,
            },
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_whatever_a_target_answers(echo: Callable[[bytes], Event], answer: bytes) -> None:
    event = echo(answer)
    trace = traces.Trace(
        {"block_size": 512, "crash_profile": None, "capabilities": []},
        [{**PROGRAM[0], "result": {"ok": True}}, event],
    )
    verdict = judge([trace], MODEL)[0]
    assert verdict.verdict in ("pass", "fail")
    if "failure" in event:
        assert (
            event["failure"]["kind"] in ("protocol", "exit")
            and "\n" not in event["failure"]["message"]
        )
        assert len(event["failure"]["message"]) < 500
        assert "it raised" not in event["failure"]["message"], (
            "the kit's own error, caught at the last moment"
        )


@pytest.mark.parametrize(
    "line, says",
    [
        (
            b'{"op":"crash","kept":[-1],"result":{"ok":true}}',
            "kept[0] must be bigger than or equal to 0, is -1",
        ),
        (b'{"op":"crash","kept":["all"],"result":{"ok":true}}', "kept[0] must be integer"),
        (b'{"op":"crash","kept":7,"result":{"ok":true}}', "kept must be array"),
        (
            b'{"op":"crash","kept":[' + b"9" * 5000 + b'],"result":{"ok":true}}',
            "not JSON that can be read",
        ),
        (b'{"op":"write","lba":1e400,"tags":[1],"result":{"ok":true}}', "lba"),
        (b'{"op":"write","lba":0,"tags":"1","result":{"ok":true}}', "tags must be array"),
        (b'{"op":"read","lba":0,"count":9999999999999999999,"result":{"ok":true,"tags":[]}}', ""),
    ],
)
def test_wrong_lines_are_one_line_and_status_three(tmp_path: Path, line: bytes, says: str) -> None:
    path = tmp_path / "wrong.jsonl"
    hello = b'{"trace":1,"hello":{"block_size":512,"crash_profile":"ack","capabilities":["crash"]}}'
    path.write_bytes(
        b"\n".join([hello, b'{"op":"create","blocks":4,"result":{"ok":true}}', line, b""])
    )
    for command in (["check", str(path)], ["replay", str(path), "--target", "refmodel"]):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 3 and f"{path}:3: " in result.output and says in result.output, (
            result.output
        )
        assert "Traceback" not in result.output and all(
            len(text) < 400 for text in result.output.splitlines()
        )


def overlapping_lines(seed: int) -> list[Event]:
    trace = history(random.Random(seed), 8, blocks=2, in_flight=3)
    return [{"trace": 2, "hello": trace.hello}, *trace.events]


@LOOSE
@given(st.data())
def test_damaged_traces_of_requests_that_overlap(tmp_path: Path, data: st.DataObject) -> None:
    """Keys that are missing, values that are wrong, lines in another order or without positions:
    a verdict, or one line, and a documented exit status."""
    lines = overlapping_lines(data.draw(st.integers(0, 50)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        place = lines[at]
        change = data.draw(st.sampled_from(["swap", "drop", "twice", "key", "value", "unplaced"]))
        if change == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], place
        elif change == "drop" and len(lines) > 1:
            del lines[at]
        elif change == "twice":
            lines.insert(at, dict(place))
        elif change == "unplaced":
            lines[at] = {k: v for k, v in place.items() if k not in ("called", "answered")}
        elif place:
            inner = place.get("result")
            deep = isinstance(inner, dict) and inner and data.draw(st.booleans())
            changed = inner if deep else place
            key = data.draw(st.sampled_from(sorted(changed)))
            kept = {k: v for k, v in changed.items() if k != key}
            if change == "value":
                kept[key] = data.draw(anything | st.integers(-3, 40))
            lines[at] = {**place, "result": kept} if deep else kept
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = CliRunner().invoke(main, ["check", "--oracle", "model", str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 3) and "Traceback" not in result.output


@pytest.mark.parametrize("gone", [("called", "answered"), ("called",), ("answered",)])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_events_with_and_without_positions_are_one_line(
    tmp_path: Path, at: int, gone: tuple[str, ...]
) -> None:
    lines = overlapping_lines(3)
    lines[at] = {key: value for key, value in lines[at].items() if key not in gone}
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 3 and "called" in result.output, result.output
    assert len(result.output.splitlines()) == 2, "the complaint, and the summary"
