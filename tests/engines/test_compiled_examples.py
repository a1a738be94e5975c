"""The C, Rust and Go examples are built, and keep the contract."""

import base64
import json
import subprocess
from pathlib import Path

from support.examples import EXAMPLES, passes

BUILT = EXAMPLES.parents[1] / "build" / "examples"


def test_rust() -> None:
    subprocess.run(
        [
            "cargo",
            "build",
            "--quiet",
            "--release",
            "--target-dir",
            BUILT / "rust",
            "--manifest-path",
            EXAMPLES / "rust_disk" / "Cargo.toml",
        ],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'rust' / 'release' / 'rust-disk'}").crashes > 0


def test_go() -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["go", "build", "-C", EXAMPLES / "go_disk", "-o", BUILT / "go-disk"],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'go-disk'}").crashes > 0


def test_c() -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]
    subprocess.run(
        [*command, BUILT / "c-disk", EXAMPLES / "c_disk" / "main.c"], check=True, timeout=600
    )
    assert passes(f"exec:{BUILT / 'c-disk'}").crashes > 0


def test_the_c_header_has_no_undefined_behaviour() -> None:
    """Names and data of all kinds go through the header; the sanitizers of the compiler watch."""
    BUILT.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-g", "-pthread", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    watched = BUILT / "c-disk-watched"
    subprocess.run([*command, "-o", watched, EXAMPLES / "c_disk" / "main.c"], check=True)
    lines = [
        b'{"op":"create","blocks":2}',
        b'{"op": "snapshot", "name": "lba\\" : 7"}',
        b'{"op":"snapshot","name":"' + b"x" * 5000 + b'"}',
        b'{"op":"snapshot","name":"op"}',
        b'{"data":"' + b"QUJD" * 170 + b'QUI=","lba":1,"op":"write"}',
        b'{"op":"read","lba":0,"count":2}',
        b'{"op":"read","lba":9223372036854775807,"count":9223372036854775807}',
        b'{"op":"dance"}',
        b'{"op":"bye"}',
    ]
    done = subprocess.run([watched], input=b"\n".join(lines), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [answer.get("error", "ok") for answer in answers]
    assert codes == [
        "ok",
        "bad-request",
        "bad-request",
        "ok",
        "ok",
        "ok",
        "out-of-range",
        "unsupported",
    ]
    data = base64.b64decode(answers[5]["data"])
    assert data == bytes(512) + b"ABC" * 170 + b"AB"


def test_the_c_header_says_which_writes_are_durable_at_once(tmp_path: Path) -> None:
    program = """#include "dialogue.h"
    int main(void) {
        for (struct request *q; (q = read_request()); free_request(q))
            answer(q, q->fua ? "\\"fua\\":true" : "\\"fua\\":false", q->data, q->data_bytes);
    }"""
    (tmp_path / "fua.c").write_text(program)
    header = f"-I{EXAMPLES / 'c_disk'}"
    command = ["cc", "-pthread", header, "-o"]
    subprocess.run([*command, tmp_path / "fua", tmp_path / "fua.c"], check=True, timeout=600)
    as_cpp = ["c++", "-x", "c++", "-fsyntax-only", header]
    subprocess.run([*as_cpp, tmp_path / "fua.c"], check=True, timeout=600)
    data = "Ig=="  # a quotation mark, where another field may come behind it
    writes: list[dict[str, str | bool]] = [
        {"data": data},
        {"fua": True, "data": data},
        {"data": data, "fua": True},
        {"fua": False, "data": data},
    ]
    lines = [json.dumps({"op": "write", **write}) for write in writes]
    done = subprocess.run(
        [tmp_path / "fua"], input="\n".join(lines).encode(), capture_output=True, timeout=60
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["fua"] for answer in answers] == [False, True, True, False]
    assert {answer["data"] for answer in answers} == {data}


def test_the_c_header_has_the_fields_of_devices_and_of_power_cuts(tmp_path: Path) -> None:
    program = """#include "dialogue.h"
    int main(void) {
        for (struct request *q; (q = read_request()); free_request(q)) {
            char fields[TEXT_BYTES];
            snprintf(fields, sizeof fields, "\\"all\\":[%lld,\\"%.20s\\",%lld,%lld,%lld,%lld]",
                     q->device, q->mode, q->seconds, q->cut_after, q->cut_seed, q->wait);
            answer(q, fields, q->data, q->data_bytes);
        }
    }"""
    (tmp_path / "fields.c").write_text(program)
    command = ["cc", "-pthread", "-Wall", "-Werror", "-Wno-unused-function"]
    command += [f"-I{EXAMPLES / 'c_disk'}", "-o"]
    subprocess.run([*command, tmp_path / "fields", tmp_path / "fields.c"], check=True, timeout=600)
    requests = [
        {"op": "fail", "device": 2, "mode": "absent", "cut": {"after": 3, "seed": 2**40}},
        {"op": "tick", "seconds": 3600},
        {"op": "write", "data": "Ig==", "cut": {"after": 300, "seed": 1}},
        {"op": "write", "cut": {"seed": 1, "after": 300}, "data": "Ig=="},
        {"op": "snapshot", "name": "after"},
        {"op": "read", "wait": 2, "view": "wait"},
    ]
    done = subprocess.run(
        [tmp_path / "fields"],
        input="\n".join(map(json.dumps, requests)).encode(),
        capture_output=True,
        timeout=60,
    )
    assert [json.loads(line)["all"] for line in done.stdout.splitlines()] == [
        [2, "absent", 0, 3, 2**40, 0],
        [0, "", 3600, 0, 0, 0],
        [0, "", 0, 300, 1, 0],
        [0, "", 0, 300, 1, 0],
        [0, "", 0, 0, 0, 0],
        [0, "", 0, 0, 0, 2],
    ]


def test_the_c_header_has_the_options_of_a_disk(tmp_path: Path) -> None:
    program = """#include "dialogue.h"
    int main(void) {
        for (struct request *q; (q = read_request()); free_request(q)) {
            char kind[TEXT_BYTES] = "none", cache[TEXT_BYTES] = "none", sync[TEXT_BYTES] = "none";
            option(q, "kind", kind), option(q, "cache", cache), option(q, "sync", sync);
            printf("%s %s %s\\n", kind, cache, sync);
        }
    }"""
    (tmp_path / "options.c").write_text(program)
    command = ["cc", "-pthread", "-Wall", "-Werror", "-Wno-unused-function"]
    command += [f"-I{EXAMPLES / 'c_disk'}", "-o", str(tmp_path / "options")]
    subprocess.run([*command, tmp_path / "options.c"], check=True, timeout=600)
    creates = [
        {"op": "create", "blocks": 8, "options": {"kind": None}},
        {"op": "create", "blocks": 8, "options": {"kind": "a, b", "cache": 64, "sync": True}},
        {"op": "create", "options": {"sync": False, "cache": 2}, "blocks": 8},
    ]
    done = subprocess.run(
        [tmp_path / "options"],
        input="\n".join(map(json.dumps, creates)).encode(),
        capture_output=True,
        timeout=60,
    )
    assert done.stdout.decode().splitlines() == ["none none none", "a, b 64 true", "none 2 false"]
