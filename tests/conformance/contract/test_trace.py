"""Trace files: what is written is read again, and damage is named by file and line."""

import json
from pathlib import Path

import pytest

from conformance.contract import trace as traces
from conformance.contract.trace import BadTrace, Event, Trace

HELLO = {
    "block_size": 512,
    "crash_profile": "ack",
    "capabilities": ["crash"],
    "name": "x",
    "version": "1",
}
HEADER = {"trace": 1, "hello": HELLO}
CREATE = {"op": "create", "blocks": 4, "result": {"ok": True}}
READ = {"op": "read", "lba": 0, "count": 1, "result": {"ok": True, "tags": [0]}}


def text(*lines: object) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


def read(tmp_path: Path, content: str | bytes) -> Trace:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return traces.read(path)


def test_round_trip(tmp_path: Path) -> None:
    events: list[Event] = [
        CREATE,
        {"op": "write", "lba": 1, "tags": [5], "cut": {"after": 2, "seed": 9}, "result": None},
        {"op": "crash", "result": {"ok": True}, "events": [{"event": "recover"}]},
        {
            "op": "read",
            "lba": 1,
            "count": 1,
            "view": "naïve",
            "result": {"ok": False, "error": "bad-request"},
        },
    ]
    trace = Trace(HELLO, events, 7, {"write_back": True})
    traces.write(trace, tmp_path / "a.jsonl")
    again = traces.read(tmp_path / "a.jsonl")
    assert (again.hello, again.events, again.seed, again.options) == (
        HELLO,
        events,
        7,
        {"write_back": True},
    )
    assert again.program[1] == {
        "op": "write",
        "lba": 1,
        "tags": [5],
        "cut": {"after": 2, "seed": 9},
    }


DAMAGE: dict[str, tuple[str | bytes, int, str]] = {
    "empty": ("", 1, "empty"),
    "header only": (text(HEADER), 2, "no operations"),
    "no header": (text(CREATE), 1, "trace"),
    "other version": (text({**HEADER, "trace": 3}, CREATE), 1, "trace"),
    "no JSON": (text(HEADER, CREATE, "{oops"), 3, "not JSON"),
    "no object": (text(HEADER, CREATE, [1, 2]), 3, "not a JSON object"),
    "cut off": (text(HEADER, CREATE, READ)[:-5], 3, "cut off"),
    "no UTF-8": (text(HEADER, CREATE).encode() + b'{"op":"\xff"}\n', 3, "not UTF-8"),
    "NaN": (text(HEADER, CREATE, '{"op":"tick","seconds":NaN,"result":{"ok":true}}'), 3, "NaN"),
    "huge number": (
        text(HEADER, CREATE, '{"op":"flush","lba":1' + "0" * 5000 + ',"result":null}'),
        3,
        "digits",
    ),
    "big lba": (text(HEADER, CREATE, {**READ, "lba": 10**30}), 3, "lba"),
    "negative count": (text(HEADER, CREATE, {**READ, "count": -1}), 3, "count"),
    "fraction": (text(HEADER, CREATE, {**READ, "lba": 0.5}), 3, "lba"),
    "boolean": (text(HEADER, CREATE, {**READ, "lba": True}), 3, "lba"),
    "too deep": (text(HEADER, CREATE, "[" * 100_000 + "]" * 100_000), 3, "deep"),
    "unknown op": (
        text(HEADER, CREATE, {"op": "frob", "result": {"ok": True}}),
        3,
        "op must be one of",
    ),
    "op no string": (
        text(HEADER, CREATE, {"op": ["read"], "result": {"ok": True}}),
        3,
        "op must be one of",
    ),
    "no result": (text(HEADER, CREATE, {"op": "flush"}), 3, "result"),
    "result no object": (text(HEADER, CREATE, {"op": "flush", "result": 7}), 3, "result"),
    "unknown code": (
        text(HEADER, CREATE, {"op": "flush", "result": {"ok": False, "error": "EIO"}}),
        3,
        "error",
    ),
    "refusal without code": (
        text(HEADER, CREATE, {"op": "flush", "result": {"ok": False}}),
        3,
        "error",
    ),
    "read without tags": (text(HEADER, CREATE, {**READ, "result": {"ok": True}}), 3, "tags"),
    "too few tags": (text(HEADER, CREATE, {**READ, "count": 2}), 3, "must be 2 tags"),
    "no create": (text(HEADER, READ), 2, "create"),
    "two creates": (text(HEADER, CREATE, CREATE), 3, "create"),
    "nothing after a cut": (text(HEADER, CREATE, {**READ, "result": None}, READ), 4, "only crash"),
    "long line": (
        text(HEADER, CREATE, json.dumps({**READ, "x": "y" * (9 << 20)})),
        3,
        "longer than 8 MiB",
    ),
    "nul bytes": (text(HEADER, CREATE).encode() + bytes(100) + b"\n", 3, "not JSON"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_has_a_name_and_a_line(tmp_path: Path, damage: str) -> None:
    content, number, words = DAMAGE[damage]
    with pytest.raises(BadTrace) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 't.jsonl'}:{number}: ") and words in message, message
    assert "\n" not in message and len(message) < 600


def test_unreadable_files(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(BadTrace) as caught:
            traces.read(path)
        assert str(caught.value).startswith(str(path))


def test_a_crash_needs_a_promise(tmp_path: Path) -> None:
    header = {"trace": 1, "hello": {**HELLO, "crash_profile": None}}
    with pytest.raises(BadTrace, match="promises nothing"):
        read(tmp_path, text(header, CREATE, {"op": "crash", "result": {"ok": True}}))


def test_the_schema_is_valid_json_schema() -> None:
    """Every line of a good trace is valid for the schema as it stands, not only for its parts."""
    import fastjsonschema

    check = fastjsonschema.compile(json.loads(traces.SCHEMA.read_text()))
    for line in (HEADER, CREATE, READ, {"op": "flush", "result": None}):
        check(line)
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check({"op": "flush", "result": {"ok": False}})


def test_of_many_blocks_the_first_are_shown_and_those_that_matter() -> None:
    write = {"op": "write", "lba": 100, "tags": [*range(1, 66)], "result": {"ok": True}}
    first = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
    for around in (None, 3, 100, 110, 165):
        assert traces.line(write, around) == f"write 100: {first} ... (65 blocks) -> ok"
    near = "1 2 3 4 ... 136: 37 38 39 40 41 42 43 44"
    assert traces.line(write, 140) == f"write 100: {near} ... (65 blocks) -> ok"
    for around in (114, 164):
        assert f" {around - 99} " in traces.line(write, around)
    read = {"op": "read", "lba": 0, "count": 17, "result": {"ok": True, "tags": [*range(17)]}}
    assert traces.line(read, 16).endswith(
        "-> 0 1 2 3 ... 9: 9 10 11 12 13 14 15 16 ... (17 blocks)"
    )
    assert traces.line({**write, "tags": [7, 8]}, 101) == "write 100: 7 8 -> ok"
