"""Count the flushes of the proved disk while nbdcopy copies an image of 64 MiB to it over NBD.

    python proofs/disk/copy_flushes.py [REQUEST_SIZE ...]

Each request size, in bytes, is copied to a new disk; by default 256 KiB, as nbdcopy does, 4 MiB and
32 MiB. How many writes share a record depends on how many have arrived, so the counts vary with the
load of the machine. Needs nbdcopy (`make serve-setup`).
"""

import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from kill_server import PROGRAM, Server

BLOCKS, BLOCK = 16384, 4096
SIZES = (256 << 10, 4 << 20, 32 << 20)


def copied(size: int) -> dict[str, int]:
    """Copy an image to a new disk in requests of `size` bytes. Return the device's I/Os by kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = folder / "image"
        image.write_bytes(
            b"".join((i + 1).to_bytes(8, "little") * (BLOCK // 8) for i in range(BLOCKS))
        )
        subprocess.run([PROGRAM, "create", folder / "disk", "--blocks", str(BLOCKS)], check=True)
        server = Server(folder)
        uri = f"nbd+unix:///?socket={folder}/nbd.sock"
        subprocess.run(["nbdcopy", f"--request-size={size}", image, uri], check=True)
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(folder / "disk" / "control"))
            control.sendall(b'{"op":"stats"}\n')
            counters: dict[str, int] = json.loads(control.makefile().readline())["counters"]
        server.process.terminate()
        server.process.wait()
        return counters


def main() -> None:
    for size in map(int, sys.argv[1:]) if sys.argv[1:] else SIZES:
        spent = copied(size)
        print(
            f"requests of {size >> 10} KiB: {spent['device_flushes']} flushes, "
            f"{spent['device_writes']} block writes of {BLOCKS} blocks"
        )


if __name__ == "__main__":
    main()
