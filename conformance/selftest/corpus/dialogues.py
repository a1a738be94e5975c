"""Targets that store data correctly, but violate the dialogue."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable

from conformance.examples.dict_disk import Answer

Dialogue = Callable[[Answer, Answer], None]

LINES: dict[str, Dialogue] = {}


def says(function: Dialogue) -> Dialogue:
    """Return a dialogue that is wrong: called with the request and the response, it prints what it
    likes.
    """
    LINES[function.__name__.replace("_", "-")] = function
    return function


@says
def hangs(request: Answer, response: Answer) -> None:
    if request["op"] == "write":
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def hangs_in_hello(request: Answer, response: Answer) -> None:
    time.sleep(60)


@says
def ignores_end_and_signals(request: Answer, response: Answer) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if request["op"] == "flush":
        while True:
            time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def prints_garbage(request: Answer, response: Answer) -> None:
    print("\x00\xff{[" if request["op"] == "read" else json.dumps(response), flush=True)


@says
def prints_bytes(request: Answer, response: Answer) -> None:
    sys.stdout.flush()
    os.write(
        1, b"\xff\xfe\x00\n" if request["op"] == "write" else json.dumps(response).encode() + b"\n"
    )


@says
def prints_megabytes(request: Answer, response: Answer) -> None:
    print("x" * (3 << 20) if request["op"] == "read" else json.dumps(response), flush=True)


@says
def never_ends_the_line(request: Answer, response: Answer) -> None:
    if request["op"] != "read":
        print(json.dumps(response), flush=True)
        return
    while True:
        os.write(1, b"y" * (1 << 16))


@says
def nested(request: Answer, response: Answer) -> None:
    print("[" * 200_000 if request["op"] == "read" else json.dumps(response), flush=True)


@says
def exits(request: Answer, response: Answer) -> None:
    if request["op"] == "read":
        print("disk on fire", file=sys.stderr, flush=True)
        os._exit(7)
    print(json.dumps(response), flush=True)


@says
def exits_in_hello(request: Answer, response: Answer) -> None:
    sys.exit("cannot find my disk")


@says
def raises(request: Answer, response: Answer) -> None:
    if request["op"] == "flush":
        raise RuntimeError("unexpected flush")
    print(json.dumps(response), flush=True)


@says
def closes_the_pipe(request: Answer, response: Answer) -> None:
    if request["op"] == "write":
        os.close(1)
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def answers_twice(request: Answer, response: Answer) -> None:
    line = json.dumps(response)
    # Both at once: a second one that comes late is the answer to another request, and may fit.
    print(line if request["op"] == "hello" else f"{line}\n{line}", flush=True)


@says
def chats_on_stdout(request: Answer, response: Answer) -> None:
    if request["op"] == "write":
        print("DEBUG: writing", request.get("lba"))
    print(json.dumps(response), flush=True)


@says
def wrong_length(request: Answer, response: Answer) -> None:
    if "data" in response:
        response = {**response, "data": response["data"][:4]}
    print(json.dumps(response), flush=True)


@says
def not_base64(request: Answer, response: Answer) -> None:
    if "data" in response:
        response = {**response, "data": "*" * 16}
    print(json.dumps(response), flush=True)


@says
def no_data(request: Answer, response: Answer) -> None:
    response.pop("data", None)
    print(json.dumps(response), flush=True)


@says
def not_an_object(request: Answer, response: Answer) -> None:
    print(json.dumps([response] if request["op"] == "write" else response), flush=True)


@says
def null(request: Answer, response: Answer) -> None:
    print("null" if request["op"] == "write" else json.dumps(response), flush=True)


@says
def ok_is_a_word(request: Answer, response: Answer) -> None:
    print(
        json.dumps({**response, "ok": "true"} if request["op"] == "write" else response), flush=True
    )


@says
def invents_an_error(request: Answer, response: Answer) -> None:
    print(json.dumps(response if response["ok"] else {"ok": False, "error": "EINVAL"}), flush=True)


@says
def bad_hello(request: Answer, response: Answer) -> None:
    print(
        json.dumps({**response, "block_size": 100} if request["op"] == "hello" else response),
        flush=True,
    )


@says
def no_number(request: Answer, response: Answer) -> None:
    print(json.dumps({**response, "extra": float("nan")}), flush=True)


@says
def events_are_a_word(request: Answer, response: Answer) -> None:
    print(json.dumps({**response, "events": "none"}), flush=True)


@says
def in_flight_is_a_word(request: Answer, response: Answer) -> None:
    print(json.dumps({**response, "protocol": 2, "in_flight": "many"}), flush=True)


@says
def dies_at_once(request: Answer, response: Answer) -> None:
    if request["op"] != "hello":
        os._exit(3)
    print(json.dumps(response), flush=True)


@says
def floods_stderr(request: Answer, response: Answer) -> None:
    sys.stderr.write("noise\n" * 50_000)
    if request["op"] == "read":
        os._exit(1)
    print(json.dumps(response), flush=True)
