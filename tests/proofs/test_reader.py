"""The oracle's reader, which is trusted and not proved: no input makes it crash, misread or fall
silent."""

import json
import random
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from agreement import PROFILES, driven

from conformance.contract import trace as traces
from conformance.judging.oracles import certified, model

FILES = 3000


@pytest.fixture(scope="module")
def program() -> Path:
    return certified.oracle()


def run(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path, found = tmp_path_factory.mktemp("originals") / "trace.jsonl", []
    for profile in PROFILES:
        for trace in driven(profile, 23, 10, 15):
            traces.write(trace, path)
            found.append(path.read_bytes())
    return found


def damaged(text: bytes, choose: random.Random) -> bytes:
    """The file with a few bytes, numbers, words or lines changed."""
    words = [
        b"null",
        b"-1",
        b"0",
        b"1e3",
        b"18446744073709551616",
        b"9007199254740993",
        b"true",
        b"{}",
        b"[",
        b'"',
        b"}",
        b"\\ud800",
        b"\xff",
        b"\x00",
        b'"live"',
        b"prefix",
        b"block",
        b"NaN",
        b"/*",
        b",",
        b'"ok":false',
        b"\n",
    ]
    for _ in range(choose.randint(1, 4)):
        at = choose.randrange(len(text))
        match choose.randrange(5):
            case 0:
                text = text[:at] + bytes([choose.randrange(256)]) + text[at + 1 :]
            case 1:
                text = text[:at] + choose.choice(words) + text[at + choose.randrange(8) :]
            case 2:
                text = text[:at] + text[at + choose.randrange(40) :]
            case 3:
                lines = text.splitlines(keepends=True)
                lines[choose.randrange(len(lines))] = choose.choice(lines)
                text = b"".join(lines)
            case _:
                digits = [i for i, byte in enumerate(text) if 48 <= byte <= 57]
                here = choose.choice(digits or [0])
                text = (
                    text[:here]
                    + b"%d" % choose.choice([0, 1, 2, 63, 64, 10**9, 2**53, 2**62, 2**64])
                    + text[here + 1 :]
                )
        text = text or b"\n"
    return text


@pytest.mark.parametrize(
    "tag, taken", [("2.0", True), ("3e1", True), ("2.5", False), ("1e300", False)]
)
def test_an_integer_may_be_written_with_a_fraction_or_an_exponent(
    program: Path, tmp_path: Path, tag: str, taken: bool
) -> None:
    path = tmp_path / "trace.jsonl"
    hello = {"name": "x", "version": "1", "block_size": 512, "payload": "tags"}
    header = {"trace": 1, "hello": {**hello, "crash_profile": "ack", "capabilities": []}}
    path.write_text(
        json.dumps(header)
        + '\n{"op":"create","blocks":4,"result":{"ok":true}}\n'
        + f'{{"op":"write","lba":0,"tags":[{tag}],"result":{{"ok":true}}}}\n'
    )
    (verdict,) = map(json.loads, run(program, path).stdout.splitlines())
    assert verdict["accepted"] is (True if taken else None)
    with nullcontext() if taken else pytest.raises(traces.BadTrace):
        traces.read(path)


def test_damaged_files(program: Path, originals: list[bytes], tmp_path: Path) -> None:
    choose = random.Random(5)
    paths = []
    for number in range(FILES):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(damaged(choose.choice(originals), choose))
        paths.append(path)
    done = run(program, *paths)
    assert done.returncode == 2 and done.stderr == ""
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verdict["trace"] for verdict in verdicts] == [str(path) for path in paths]
    read = 0
    for path, verdict in zip(paths, verdicts, strict=True):
        try:
            trace = traces.read(path)
        except traces.BadTrace:
            continue  # the kit's reader is stricter; that this one answers at all is what counts
        if verdict["accepted"] is None:
            # Half a surrogate pair is no text to OCaml.
            text = path.read_bytes()
            assert b"\\ud" in text, path.read_text()
        else:
            read += 1
            opinion = model.judge_one(trace)
            assert verdict["accepted"] is (opinion.at is None) and verdict["at"] == opinion.at, (
                path.read_text()
            )
    assert read >= FILES // 20


def test_not_traces(program: Path, tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_bytes(b"")
    binary.write_bytes(random.Random(1).randbytes(100_000))
    deep = tmp_path / "deep"
    deep.write_bytes(b'{"trace":' + b"[" * 1_000_000 + b"\n")
    done = run(program, empty, binary, deep, tmp_path, tmp_path / "missing")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode in (2, 3) and len(verdicts) == 5
    assert all(verdict["accepted"] is None and "\n" not in verdict["error"] for verdict in verdicts)


def test_usage(program: Path) -> None:
    assert run(program).returncode == 2 and run(program, "--help").returncode == 0


def test_a_long_trace(program: Path, tmp_path: Path) -> None:
    """A million operations in one file, and a million blocks in one operation."""
    path = tmp_path / "long.jsonl"
    header = {"trace": 1, "hello": {"crash_profile": "ack"}}
    ok = {"ok": True}
    with path.open("w") as out:
        print(
            json.dumps(header),
            json.dumps({"op": "create", "blocks": 2**31 - 1, "result": ok}),
            sep="\n",
            file=out,
        )
        print(json.dumps({"op": "unmap", "lba": 5, "count": 100_000, "result": ok}), file=out)
        for i in range(500_000):
            print(f'{{"op":"write","lba":{i % 64},"tags":[{i}],"result":{{"ok":true}}}}', file=out)
            print(
                f'{{"op":"read","lba":{i % 64},"count":1,"result":{{"ok":true,"tags":[{i}]}}}}',
                file=out,
            )
        print('{"op":"read","lba":0,"count":1,"result":{"ok":true,"tags":[7]}}', file=out)
    verdict = json.loads(run(program, path).stdout)
    assert (verdict["accepted"], verdict["at"]) == (False, 1_000_002)
    assert verdict["clause"].startswith("Read:")
