"""Serves a disk over NBD: this process becomes nbdkit, which runs the engine in its Python plugin.

nbdkit's plugin embeds the interpreter that Debian built it with, not the virtual environment's. The
environment's packages work in both if the two have the same minor version. So the engine runs
inside nbdkit, and no request crosses a pipe.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

from refmodel.core.errors import NotADisk
from refmodel.engine.shape import Shape
from refmodel.journal.record import RECORD_UNIT
from refmodel.log_structured.geometry import Geometry
from refmodel.media.enclosure import Enclosure

USUAL_REQUEST = 1 << 20  # bytes of the longest request to the engine; nbdkit splits longer ones
LONGEST_UNMAP = 64 << 20  # bytes
LONGEST_REQUEST = 32 << 20  # bytes that NBD clients may expect to be allowed
ROOT = Path(__file__).parents[2]  # the folder that has the package `refmodel`


def serve(disk: Path, socket_path: Path, script: Path, *, sync: bool = True) -> None:
    """Become nbdkit, which runs `script` and serves the disk until SIGTERM or SIGINT.

    Raises NotADisk if there is no disk, no nbdkit or no free socket; DiskBusy if the disk is open.
    """
    Enclosure(disk).close()
    require_nbdkit()
    _require_free(socket_path)
    settings = [f"disk={disk.absolute()}", f"socket={socket_path.absolute()}", f"sync={int(sync)}"]
    command = nbdkit(socket_path, script, f"maxlen={LONGEST_UNMAP}", *settings)
    os.execvpe("nbdkit", command, environment())


def nbdkit(socket_path: Path, script: Path, *settings: str) -> list[str]:
    """The command line of nbdkit that runs a Python script and listens on a Unix socket."""
    words = ["nbdkit", "--foreground", "--unix", str(socket_path), "--filter=blocksize"]
    return [*words, "python", str(script), *settings]


def environment() -> dict[str, str]:
    """Environment variables with which nbdkit's interpreter finds the packages of this one."""
    packages = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    # Python finds its standard library through the first python3 on the PATH, which has to be the
    # one that nbdkit was built with, not the virtual environment's.
    beside = Path(shutil.which("nbdkit") or "").parent
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(packages)),
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
    }


def require_nbdkit() -> None:
    """Raises NotADisk if there is no nbdkit whose Python can run the engine."""
    if shutil.which("nbdkit") is None:
        raise NotADisk(
            "serving needs nbdkit: run `make serve-setup`, "
            "or install nbdkit and nbdkit-plugin-python"
        )
    dumped = subprocess.run(
        ["nbdkit", "python", "--dump-plugin"], capture_output=True, text=True, timeout=30
    )
    found = re.search(r"^python_version=(\d+\.\d+)", dumped.stdout, re.MULTILINE)
    if found is None:
        raise NotADisk(
            "serving needs nbdkit's Python plugin: run `make serve-setup`, "
            "or install nbdkit-plugin-python"
        )
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if found[1] != ours:
        raise NotADisk(
            f"nbdkit runs Python {found[1]}, but this is Python {ours}: "
            f"make the virtual environment with Python {found[1]}"
        )


def longest_request(shape: Shape) -> int:
    """Bytes of the longest write that the disk can always take: a whole number of blocks."""
    header = 2 * RECORD_UNIT
    if not isinstance(shape, Geometry):
        longest = min(USUAL_REQUEST, getattr(shape, "longest_write", USUAL_REQUEST))
    elif shape.log_bytes >= header + RECORD_UNIT + shape.segment_bytes:
        longest = min(max(USUAL_REQUEST, shape.segment_bytes), LONGEST_REQUEST)
    else:
        longest = shape.log_bytes - header
    return int(longest) // shape.block_bytes * shape.block_bytes


def _require_free(path: Path) -> None:
    """Remove a socket that nobody listens on. Raises NotADisk if another server does, or if the
    file is no socket."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise NotADisk(f"another server listens on {path}")
    if path.exists():
        raise NotADisk(f"{path} exists and is not a socket")
