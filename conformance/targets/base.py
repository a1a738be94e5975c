"""What a target is: an implementation under test, answering requests one at a time."""

from collections.abc import Sequence
from typing import Any, Protocol

Message = dict[str, Any]


class Target(Protocol):
    """An implementation under test.

    `request` takes a request and returns the response, both as in the dialogue: `data` is bytes in process and
    base64 on the wire; `tags` stands in its place where `hello` says `"payload":"tags"`. The response may carry
    `events`. It raises PowerCut where the operation was cut short, TargetFailure where no answer came.

    Three attributes are optional. `cuts` (bool): a request may carry `"cut":{"after":n,"seed":s}`. `knobs`, of the
    factory (dict of option -> list of values): what a trace may choose at creation. `connect()` returns one more connection
    to the live disk, with `read(offset, length)`, `write(offset, data)`, in bytes, and `close()`: requests may overlap.
    """

    hello: Message

    def request(self, message: Message) -> Message: ...

    def close(self) -> None: ...


class PowerCut(Exception):
    """The power failed in the middle of the operation; the next request is a crash, which recovers.

    `events`, as a response may carry them, are those until then."""

    def __init__(self, events: Sequence[Message] = ()):
        super().__init__()
        self.events = list(events)


class TargetFailure(Exception):
    """The target gave no answer that counts as one.

    `kind` is "hang", "exit" or "protocol"; `message` one line; `output` what the target printed on stderr last."""

    def __init__(self, kind: str, message: str, output: str = ""):
        super().__init__(message)
        self.kind, self.message, self.output = kind, message, output


class Unusable(Exception):
    """There is nothing to test: the target cannot be started, or its hello is none. One line, then its output."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.message, self.output = message, output
