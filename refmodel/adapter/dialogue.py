"""The dialogue of the conformance kit over two streams, one JSON object a line; and what a request has to have."""

import base64
import binascii
import json
from typing import Any, BinaryIO, Protocol

from refmodel.core.errors import BadRequest, DiskError, PowerCut

Message = dict[str, Any]


class Answering(Protocol):
    """Who answers, with bytes for data; it may raise DiskError, or PowerCut."""

    def request(self, message: Message) -> Message: ...

    def events(self) -> list[Message]: ...


def serve(adapter: Answering, requests: BinaryIO, responses: BinaryIO) -> None:
    """Answer JSON lines until `bye` or the end of the requests."""
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
                "message": "the power was cut; crash comes next",
                "events": adapter.events(),
            }
        if "data" in response:
            response = {**response, "data": base64.b64encode(response["data"]).decode()}
        responses.write(json.dumps(response).encode() + b"\n")
        responses.flush()
        if message.get("op") == "bye":
            return


def decoded(line: bytes) -> Message:
    """A request, its data as bytes. Raises BadRequest."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"a request is one JSON object on a line: {error}") from None
    if not isinstance(message, dict):
        raise BadRequest("a request is one JSON object on a line")
    if isinstance(message.get("data"), str):
        try:
            message["data"] = base64.b64decode(message["data"], validate=True)
        except binascii.Error as error:
            raise BadRequest(f"data is not base64: {error}") from None
    return message


def integer(message: Message, field: str) -> int:
    """A field of a request. Raises BadRequest, as the two below."""
    value = message.get(field)
    if type(value) is not int:
        raise BadRequest(f"{message.get('op')} needs an integer {field!r}")
    return value


def text(message: Message, field: str) -> str:
    value = message.get(field)
    if not isinstance(value, str):
        raise BadRequest(f"{message.get('op')} needs a string {field!r}")
    return value


def data(message: Message) -> bytes:
    value = message.get("data")
    if not isinstance(value, bytes):
        raise BadRequest("write needs data")
    return value
