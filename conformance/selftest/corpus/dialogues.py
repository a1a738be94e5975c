"""Targets that keep their data and not to the dialogue."""

import json
import os
import signal
import sys
import time

LINES = {}


def says(function):
    """A dialogue that is wrong: called with the request and the response, it prints what it
    likes.
    """
    LINES[function.__name__.replace("_", "-")] = function
    return function


@says
def hangs(request, response):
    if request["op"] == "write":
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def hangs_in_hello(request, response):
    time.sleep(60)


@says
def ignores_end_and_signals(request, response):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if request["op"] == "flush":
        while True:
            time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def prints_garbage(request, response):
    print("\x00\xff{[" if request["op"] == "read" else json.dumps(response), flush=True)


@says
def prints_bytes(request, response):
    sys.stdout.flush()
    os.write(
        1, b"\xff\xfe\x00\n" if request["op"] == "write" else json.dumps(response).encode() + b"\n"
    )


@says
def prints_megabytes(request, response):
    print("x" * (3 << 20) if request["op"] == "read" else json.dumps(response), flush=True)


@says
def never_ends_the_line(request, response):
    if request["op"] != "read":
        print(json.dumps(response), flush=True)
        return
    while True:
        os.write(1, b"y" * (1 << 16))


@says
def nested(request, response):
    print("[" * 200_000 if request["op"] == "read" else json.dumps(response), flush=True)


@says
def exits(request, response):
    if request["op"] == "read":
        print("disk on fire", file=sys.stderr, flush=True)
        os._exit(7)
    print(json.dumps(response), flush=True)


@says
def exits_in_hello(request, response):
    sys.exit("cannot find my disk")


@says
def raises(request, response):
    if request["op"] == "flush":
        raise RuntimeError("unexpected flush")
    print(json.dumps(response), flush=True)


@says
def closes_the_pipe(request, response):
    if request["op"] == "write":
        os.close(1)
        time.sleep(60)
    print(json.dumps(response), flush=True)


@says
def answers_twice(request, response):
    print(json.dumps(response), flush=True)
    if request["op"] != "hello":
        print(json.dumps(response), flush=True)


@says
def chats_on_stdout(request, response):
    if request["op"] == "write":
        print("DEBUG: writing", request.get("lba"))
    print(json.dumps(response), flush=True)


@says
def wrong_length(request, response):
    if "data" in response:
        response = {**response, "data": response["data"][:4]}
    print(json.dumps(response), flush=True)


@says
def not_base64(request, response):
    if "data" in response:
        response = {**response, "data": "*" * 16}
    print(json.dumps(response), flush=True)


@says
def no_data(request, response):
    response.pop("data", None)
    print(json.dumps(response), flush=True)


@says
def not_an_object(request, response):
    print(json.dumps([response] if request["op"] == "write" else response), flush=True)


@says
def null(request, response):
    print("null" if request["op"] == "write" else json.dumps(response), flush=True)


@says
def ok_is_a_word(request, response):
    print(
        json.dumps({**response, "ok": "true"} if request["op"] == "write" else response), flush=True
    )


@says
def invents_an_error(request, response):
    print(json.dumps(response if response["ok"] else {"ok": False, "error": "EINVAL"}), flush=True)


@says
def bad_hello(request, response):
    print(
        json.dumps({**response, "block_size": 100} if request["op"] == "hello" else response),
        flush=True,
    )


@says
def floods_stderr(request, response):
    sys.stderr.write("noise\n" * 50_000)
    if request["op"] == "read":
        os._exit(1)
    print(json.dumps(response), flush=True)
