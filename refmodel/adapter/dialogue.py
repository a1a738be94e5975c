"""The dialogue of the conformance kit over two streams: one JSON object per line.

docs/traces.md describes the requests and the answers.
"""

import base64
import binascii
import json
from typing import Any, BinaryIO, Protocol

from refmodel.core.errors import BadRequest, DiskError, PowerCut

Message = dict[str, Any]


class Answering(Protocol):
    """Answers requests, with bytes for data."""

    def request(self, message: Message) -> Message:
        """Answer a request. Raises DiskError if it is refused, PowerCut if the power failed."""

    def drain_events(self) -> list[Message]:
        """Return the inner events since the last call, and forget them."""


def serve(adapter: Answering, requests: BinaryIO, responses: BinaryIO) -> None:
    """Answer requests until `bye`, or until there are no more."""
    for line in requests:
        message: Message = {}
        try:
            message = decoded(line)
            response = adapter.request(message)
        except DiskError as refusal:
            response = {"ok": False, "error": refusal.code, "message": str(refusal)}
        except PowerCut:
            response = {
                "ok": False,
                "error": "unknown-outcome",
                "message": "the power was cut: the next request must be crash",
                "events": adapter.drain_events(),
            }
        if "data" in response:
            response = {**response, "data": base64.b64encode(response["data"]).decode()}
        responses.write(json.dumps(response).encode() + b"\n")
        responses.flush()
        if message.get("op") == "bye":
            return


def decoded(line: bytes) -> Message:
    """Parse a request; its data becomes bytes. Raises BadRequest if it is not valid."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"a request must be a line with one JSON object: {error}") from None
    if not isinstance(message, dict):
        raise BadRequest("a request must be a line with one JSON object")
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
