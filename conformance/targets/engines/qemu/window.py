"""A device of a daemon that stays, while the image that it shows comes and goes.

An export and a connection for every opening of an image cost as much CPU time as the opening.
"""

from typing import Any

from conformance.media import nbd
from conformance.targets.engines.qemu import storage_daemon

PATIENCE = 20.0  # seconds
SIZE = (
    1 << 40
)  # bytes of the device; what is behind the end of the image is refused by qemu's block layer


def connected(
    daemon: storage_daemon.Daemon, export: str, most: int = nbd.CONNECTIONS
) -> nbd.Connections:
    """Return the export as a device, by at most `most` connections."""
    return nbd.Connections(f"nbd+unix:///{export}?socket={daemon.nbd}", PATIENCE, most)


class Window:
    """A raw node over an image or over nothing; it is exported as long as the daemon runs.

    Raises QmpError."""

    def __init__(self, daemon: storage_daemon.Daemon, name: str, writable: bool) -> None:
        self._nothing = f"{name}-nothing"
        self._node = {
            "driver": "raw",
            "node-name": name,
            "read-only": not writable,
            "discard": "unmap",
        }
        nothing = {
            "driver": "file",
            "node-name": self._nothing,
            "filename": self._nothing,
            "locking": "off",
        }
        with (daemon.folder / self._nothing).open(
            "wb"
        ) as hole:  # a file, since raw keeps what its first child can
            hole.truncate(SIZE)
        daemon.do(
            ("blockdev-add", nothing),
            ("blockdev-add", {**self._node, "file": self._nothing}),
            (
                "block-export-add",
                {"type": "nbd", "id": name, "node-name": name, "writable": writable},
            ),
        )
        self.name = name
        self.device = connected(daemon, name, nbd.CONNECTIONS if writable else 1)
        self._daemon, self._shown, self._images = daemon, "", 0
        daemon.at_end(self.device.close)

    def turn(self, image: dict[str, Any] | None) -> None:
        """Open the image, show it, and close the one shown before; None shows nothing.

        If the image cannot be opened, nothing is shown, and QmpError is raised."""
        if image is None and not self._shown:
            return
        before, self._shown, self._images = (
            self._shown,
            f"{self.name}-{self._images}" if image else "",
            self._images + 1,
        )
        commands = [("blockdev-add", {**image, "node-name": self._shown})] if image else []
        commands.append(
            ("blockdev-reopen", {"options": [{**self._node, "file": self._shown or self._nothing}]})
        )
        try:
            self._daemon.do(
                *commands, *([("blockdev-del", {"node-name": before})] if before else [])
            )
        except storage_daemon.QmpError:
            if image:
                self._shown = before
                self.turn(None)
            raise
