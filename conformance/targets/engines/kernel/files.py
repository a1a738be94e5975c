"""A disk that is a file of a file system in the guest, and the image that the host's mkfs makes.

The file system is on the whole disk of the guest. Unmounting drops what the guest had cached of
it."""

import errno
import shutil
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.targets.base import Message, Unusable
from conformance.targets.engines.kernel.disk import KernelDisk
from conformance.targets.engines.kernel.machine.guest import DISK
from conformance.targets.engines.kernel.machine.line import GuestError
from conformance.targets.engines.recorded_disk import Refusal

ROOT = "/mnt/root"
FILE = "disk"
BLOCK = 4096  # bytes: of the file system
_images: dict[tuple[int, tuple[str, ...]], bytes] = {}


class FileDisk(KernelDisk):
    """A disk that is a file. A subclass makes and mounts the file system, and has the snapshots."""

    unit = BLOCK
    blind_to = frozenset(["wild-discard"])  # it sends none
    kind: str  # type of the file system, as mount calls it
    mounted_with: tuple[str, ...] = ()  # options of mount
    tool: tuple[str, ...]  # makes one in the file named last
    _is_mounted = False

    def _make(self) -> None:
        self._blank()
        self._recorded.lay(image(self.size, *self.tool))
        self._is_up = True
        self._up()
        self._fresh()

    def _up(self) -> None:
        self._ask("fs-mount", DISK, ROOT, self.kind, "rw", *self.mounted_with)
        self._is_mounted = True

    def _down(self) -> None:
        """Unmount everything; what this writes is no longer of interest."""
        if self._is_mounted:
            self._ask("fs-umount", ROOT)
            self._is_mounted = False

    @abstractmethod
    def _fresh(self) -> None:
        """Make the live disk, a file of the right length, on an empty, mounted file system."""

    @property
    def _length(self) -> int:
        return self._units * self.unit

    def _unmap(self, message: Message) -> None:
        self._changed("punch", message["lba"], message["count"])


def image(size: int, *tool: str) -> bytes:
    """Return a file system of `size` bytes, as the tool makes it. Raises Unusable."""
    key = size, tool
    if key not in _images:
        if shutil.which(tool[0]) is None:
            raise Unusable(f"{tool[0]} not found: run make kernel")
        with tempfile.NamedTemporaryFile(prefix="conformance-") as file:
            file.truncate(size)
            done = subprocess.run([*tool, file.name], capture_output=True, text=True)
            if done.returncode:
                raise Unusable(f"{tool[0]} fails", done.stdout + done.stderr)
            _images[key] = Path(file.name).read_bytes()
    return _images[key]


@contextmanager
def space() -> Iterator[None]:
    """Turn the agent's error that there is no space into Refusal in this `with` block."""
    try:
        yield
    except GuestError as error:
        if error.number == errno.ENOSPC:
            raise Refusal("no-space", str(error)) from None
        raise


def no_such(name: str) -> Refusal:
    """Return the refusal for a snapshot that does not exist."""
    return Refusal("no-such-snapshot", name)
