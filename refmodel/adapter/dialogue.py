"""The dialogue of the conformance kit over two streams: one JSON object per line.

docs/traces.md describes the requests and the answers.
"""

import base64
import binascii
import json
import os
import select
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

from refmodel.core.errors import BadRequest, DiskError, PowerCut

Message = dict[str, Any]
VERSION_2 = ("protocol", "in_flight", "atomic")  # fields of a hello
POWER_CUT: Message = {
    "ok": False,
    "error": "unknown-outcome",
    "message": "the power was cut: the next request must be crash",
}


class Answering(Protocol):
    """Answers requests, with bytes for data."""

    def request(self, message: Message) -> Message:
        """Answer a request. Raises DiskError if it is refused, PowerCut if the power failed."""

    def drain_events(self) -> list[Message]:
        """Return the inner events since the last call, and forget them."""

    def call(self, message: Message, done: Callable[[Message], None]) -> None:
        """Call a request that may overlap others. Raises PowerCut."""

    def step(self) -> bool:
        """Take a step of what is in flight. Return False if there is none. Raises PowerCut."""


class _Lines:
    """The lines of a stream that have arrived."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = b""
        self._ended = False

    def next(self, *, wait: bool) -> bytes | None:
        """Return the next line; b"" at the end; None if it has not arrived and not `wait`."""
        while b"\n" not in self._buffer and not self._ended:
            if not wait and not select.select([self._stream], [], [], 0)[0]:
                return None
            part = os.read(self._stream.fileno(), 1 << 16)
            self._buffer += part
            self._ended = not part
        line, end, self._buffer = self._buffer.partition(b"\n")
        return line + end


def serve(adapter: Answering, requests: BinaryIO, responses: BinaryIO) -> None:
    """Answer requests until `bye`, or until there are no more.

    One at a time, in version 1. If the first request asks for version 2, as they come.
    """
    lines = _Lines(requests)
    while line := lines.next(wait=True):
        message: Message = {}
        try:
            message = decoded(line)
            response = adapter.request(message)
        except DiskError as refusal:
            response = refused(refusal)
        except PowerCut:
            response = POWER_CUT | {"events": adapter.drain_events()}
        if message.get("op") == "hello" and not _asks_for_version_2(message):
            response = {key: response[key] for key in response if key not in VERSION_2}
        _send(responses, response)
        if message.get("op") == "bye":
            return
        if response.get("protocol") == 2:
            _serve_together(adapter, lines, responses)
            return


def _asks_for_version_2(hello: Message) -> bool:
    protocol = hello.get("protocol")
    return type(protocol) is int and protocol >= 2


def _serve_together(adapter: Answering, lines: _Lines, responses: BinaryIO) -> None:
    """Answer numbered requests in any order: take steps while no request comes."""
    flying: set[int] = set()  # the ids of the requests in flight

    def called(message: Message) -> None:
        id = integer(message, "id")
        if id in flying:
            raise BadRequest(f"the request with the id {id} is in flight")
        flying.add(id)

        def done(answer: Message) -> None:
            if message.get("op") == "crash":
                flying.clear()
            flying.discard(id)
            told = {key: value for key, value in answer.items() if key != "events"}
            _send(responses, {**told, "id": id})

        try:
            adapter.call(_with_bytes(message), done)
        except DiskError as refusal:
            done(refused(refusal))

    while True:
        line = lines.next(wait=not flying)
        try:
            if line is None:
                if not adapter.step():
                    flying.clear()  # nothing may go on
                adapter.drain_events()  # they are not told of requests that overlap
            elif not line or (message := _parsed(line)).get("op") == "bye":
                while flying and adapter.step():
                    pass
                return
            else:
                called(message)
        except BadRequest as refusal:
            _send(responses, refused(refusal))
        except PowerCut:
            for id in sorted(flying):
                _send(responses, {**POWER_CUT, "id": id})
            flying.clear()


def _send(responses: BinaryIO, response: Message) -> None:
    if "data" in response:
        response = {**response, "data": base64.b64encode(response["data"]).decode()}
    responses.write(json.dumps(response).encode() + b"\n")
    responses.flush()


def refused(refusal: DiskError) -> Message:
    """Return the answer of a refusal."""
    return {"ok": False, "error": refusal.code, "message": str(refusal)}


def decoded(line: bytes) -> Message:
    """Parse a request; its data becomes bytes. Raises BadRequest if it is not valid."""
    return _with_bytes(_parsed(line))


def _parsed(line: bytes) -> Message:
    try:
        message = json.loads(line.decode())
    except UnicodeDecodeError:
        raise BadRequest("a request must be UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"a request must be a line with one JSON object: {error}") from None
    if not isinstance(message, dict):
        raise BadRequest("a request must be a line with one JSON object")
    return message


def _with_bytes(message: Message) -> Message:
    if isinstance(message.get("data"), str):
        try:
            message["data"] = base64.b64decode(message["data"], validate=True)
        except binascii.Error as error:
            raise BadRequest(f"data must be base64: {error}") from None
    return message


def integer(message: Message, field: str) -> int:
    """Return an integer field of a request. Raises BadRequest if it has none."""
    value = message.get(field)
    if type(value) is not int:
        raise BadRequest(f"{message.get('op')} needs an integer {field!r}")
    return value


def text(message: Message, field: str) -> str:
    """Return a text field of a request. Raises BadRequest if it has none."""
    value = message.get(field)
    if not isinstance(value, str):
        raise BadRequest(f"{message.get('op')} needs a string {field!r}")
    return value


def data(message: Message) -> bytes:
    """Return the data of a write. Raises BadRequest if it has none."""
    value = message.get("data")
    if not isinstance(value, bytes):
        raise BadRequest("write needs data")
    return value
