"""A guest in QEMU: a distribution's kernel, with the same agent and the same recorded disk.

It confirms a finding on another kernel. It is emulated, and slower by far than user-mode Linux."""

import shutil
import socket
from pathlib import Path

from conformance.targets.base import Unusable
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
MEMORY = "512M"
BOOT = 600.0  # seconds


class QemuGuest(Guest):
    """`linux` is a folder into which the package of a kernel was unpacked. There is one line to the
    agent. Raises Unusable. Close it."""

    def __init__(self, linux: Path, size: int) -> None:
        self._linux = linux
        super().__init__(size)

    def _found(self) -> str:
        if shutil.which(SYSTEM) is None:
            raise Unusable(f"{SYSTEM} not found: install qemu-system-x86")
        self._kernel, self._modules = found(self._linux)
        return self._modules.name

    def _boot(self) -> None:
        self._make_disk()
        needed = self._make_image(self._modules, WANTED)
        self._make_mailbox()
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        words = [SYSTEM, "-nographic", "-no-reboot", "-nodefaults", "-m", MEMORY]
        words += ["-object", f"memory-backend-memfd,id=memory,size={MEMORY},share=on"]
        words += ["-machine", "pc,memory-backend=memory"]
        words += ["-kernel", str(self._kernel.absolute()), "-initrd", "image"]
        words += ["-append", "console=ttyS0 rdinit=/init quiet panic=-1 agent_port=/dev/ttyS1"]
        words += ["-chardev", "socket,id=disk,path=vhost"]
        words += ["-device", "vhost-user-blk-pci,chardev=disk"]
        words += ["-drive", "file=mailbox,format=raw,if=virtio,cache=writeback"]
        words += ["-serial", "stdio", "-serial", f"tcp:127.0.0.1:{port}"]
        self._start(words)
        listening.settimeout(BOOT)
        with listening:
            accepted, _ = listening.accept()
        self._connect([accepted], BOOT)
        self._load(needed)


def found(linux: Path) -> tuple[Path, Path]:
    """Return the kernel in the folder, and the folder of its modules. Raises Unusable."""
    kernels = sorted(linux.glob("boot/vmlinuz-*"))
    listed = sorted(linux.glob("lib/modules/*/modules.dep"))
    listed += sorted(linux.glob("usr/lib/modules/*/modules.dep"))
    if not kernels or not listed:
        raise Unusable(
            f"{linux} has no boot/vmlinuz-* and lib/modules/*/modules.dep: unpack a kernel's "
            "package there by dpkg-deb -x, and run depmod -b"
        )
    return kernels[0], listed[0].parent
