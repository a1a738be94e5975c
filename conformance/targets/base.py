"""The interface of a target: an implementation under test, answering one request at a time."""

from collections.abc import Sequence
from typing import Any, Protocol

Message = dict[str, Any]
# What code of a target in process raises. SystemExit is no Exception: `sys.exit(0)` in a target
# would otherwise end the kit, with the status of a pass.
RAISED = (Exception, SystemExit)


def named(error: BaseException) -> str:
    """Return the error in a line: its type, and what it says."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class Target(Protocol):
    """An implementation under test.

    Requests and answers are those of the dialogue. `data` is bytes in process and base64 on the
    wire; if `hello` says `"payload":"tags"`, `tags` stand in its place. An answer may carry
    `events`.

    Some attributes are optional. With `cuts` (bool) a request may carry
    `"cut":{"after":n,"seed":s}`. With `breaks_off` (bool) a request without one may raise PowerCut
    too: it was carried out in part. `call`, `step` and `schedules` are for several requests at a
    time (conformance.targets.overlapping). `knobs` of the class or callable that makes targets
    (option -> list of values) are what a trace may choose at creation. `connect()` returns one more
    connection to the live disk, with `read(offset, length)`, `write(offset, data)` and `close()`,
    in bytes.
    """

    hello: Message

    def request(self, message: Message) -> Message:
        """Return the answer. Raises PowerCut if the power failed, TargetFailure if none came."""
        ...

    def close(self) -> None:
        """Put the target away; nothing may be left running."""
        ...


class PowerCut(Exception):
    """Raised if the power failed in the middle of the operation; the next request is a crash.

    `events`, as a response may carry them, are those until then."""

    def __init__(self, events: Sequence[Message] = ()) -> None:
        super().__init__()
        self.events = list(events)


class TargetFailure(Exception):
    """Raised if the target gave no valid answer.

    `kind` is "hang", "exit" or "protocol", `message` one line, and `output` what the target printed
    on stderr last."""

    def __init__(self, kind: str, message: str, output: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.output = kind, message, output


class Unusable(Exception):
    """Raised if the target cannot be started, or its hello is not valid.

    The message is one line; `output` is what the target printed.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.message, self.output = message, output
