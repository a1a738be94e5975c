"""A guest in QEMU: a distribution's kernel with the same agent, on a disk that a cut has left.

It confirms a finding on another kernel. It takes minutes where a guest of user-mode Linux takes
seconds, since it is emulated, and records nothing."""

import gzip
import lzma
import os
import shutil
import socket
import subprocess
from pathlib import Path

from conformance.targets.base import Unusable
from conformance.targets.engines.kernel.machine import image
from conformance.targets.engines.kernel.machine.guest import Guest

SYSTEM = "qemu-system-x86_64"
WANTED = (
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "dm-thin-pool",
    "dm-snapshot",
    "nilfs2",
    "btrfs",
)
BOOT = 600.0  # seconds


class QemuGuest(Guest):
    """The kernel `kernel` with the modules in `modules` (the folder of its version), and a copy of
    the file `disk` as /dev/vda. Raises Unusable. Close it."""

    def __init__(self, kernel: Path, modules: Path, disk: Path) -> None:
        self._kernel, self._modules, self._source = kernel, modules, disk
        super().__init__(disk.stat().st_size)

    def _boot(self) -> None:
        if shutil.which(SYSTEM) is None:
            raise Unusable(f"{SYSTEM} not found: install qemu-system-x86")
        shutil.copyfile(self._source, self.folder / "disk")
        needed = image.modules(self._modules, WANTED)
        files = {f"m/{_plain(path)}": _content(path) for path in needed}
        files["init"] = image.agent(image.BUILT).read_bytes()
        (self.folder / "image").write_bytes(image.archive(files))
        self._make_mailbox()
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        self._console = (self.folder / "console").open("w+b")
        words = [SYSTEM, "-M", "pc", "-m", "512", "-nographic", "-no-reboot", "-nodefaults"]
        words += ["-kernel", str(self._kernel), "-initrd", "image"]
        words += ["-append", "console=ttyS0 rdinit=/init quiet panic=-1 agent_port=/dev/ttyS1"]
        for name in ("disk", "mailbox"):
            words += ["-drive", f"file={name},format=raw,if=virtio,cache=writeback"]
        words += ["-serial", "stdio", "-serial", f"tcp:127.0.0.1:{port}"]
        self._process = subprocess.Popen(
            words,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=self._console,
            start_new_session=True,
            env=os.environ,
        )
        self._watch()
        listening.settimeout(BOOT)
        with listening:
            accepted, _ = listening.accept()
        self._connect([accepted], BOOT)
        for name in files:
            if name.startswith("m/"):
                self.ask("load", f"/{name}")


def _plain(path: Path) -> str:
    return path.name.removesuffix(".xz").removesuffix(".gz")


def _content(path: Path) -> bytes:
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)
    return unpack(path.read_bytes())
