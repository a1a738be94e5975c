"""The times that a served disk may have lost what it had answered, and which clients know of it.

A flush on one connection covers the writes of all connections. So each client that was connected
at a loss must be told, whichever of them wrote: its next flush is refused once. If nobody has been
told yet, a client that connects later is told, too. Perhaps the one that wrote has gone.
"""


class Losses:
    """The losses of one disk since the server opened it."""

    def __init__(self) -> None:
        self.count = 0
        self.told = 0  # the last loss that any client was told of; a new client need not hear of it
        self.why = ""  # the reason of the last one

    def add(self, why: str) -> None:
        """Count a loss."""
        self.count += 1
        self.why = why
