"""The number of steps that a search for an order may take."""

from dataclasses import dataclass


class TooMany(Exception):
    """The search took more steps than it may. The message is one line."""


@dataclass
class Budget:
    """Counts the steps of a search, of the whole disk and of disks of one block."""

    most: int
    taken: int = 0

    def take(self) -> None:
        """Count one step. Raises TooMany."""
        self.taken += 1
        if self.taken > self.most:
            raise TooMany(
                f"more than {self.most} steps to find an order: use fewer requests in flight"
            )
