"""Serving a disk over NBD: nbdkit with refmodel.serving.nbdkit_plugin takes the place of this process.

nbdkit's Python plugin embeds the interpreter that Debian built it with, not the virtual environment's. The packages of the environment serve both
if the two have the same minor version, so the engine runs inside nbdkit and no request crosses a pipe.
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

PLUGIN = Path(__file__).with_name("nbdkit_plugin.py")
USUAL_BYTES = 1 << 20  # of one request to the engine; nbdkit cuts longer ones
LONGEST_UNMAP = 64 << 20  # bytes
MOST_BYTES = 32 << 20  # that NBD clients may expect to be allowed


def serve(disk: Path, socket_path: Path, *, sync: bool = True) -> None:
    """Become nbdkit, serving the disk on a Unix socket until SIGTERM or SIGINT. Raises NotADisk or DiskBusy if it cannot be."""
    Enclosure(disk).close()
    require_nbdkit()
    _require_free(socket_path)
    settings = [f"disk={disk.absolute()}", f"socket={socket_path.absolute()}", f"sync={int(sync)}"]
    os.execvpe(
        "nbdkit", nbdkit(socket_path, PLUGIN, f"maxlen={LONGEST_UNMAP}", *settings), environment()
    )


def nbdkit(socket_path: Path, plugin: Path, *settings: str) -> list[str]:
    """The command that serves a plugin."""
    return [
        "nbdkit",
        "--foreground",
        "--unix",
        str(socket_path),
        "--filter=blocksize",
        "python",
        str(plugin),
        *settings,
    ]


def environment() -> dict[str, str]:
    """In which nbdkit's interpreter finds the packages of this one."""
    packages = [
        str(PLUGIN.parent.parent),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    ]
    beside = (
        Path(shutil.which("nbdkit")).parent
    )  # the standard library is found through the first python3 on the PATH: it has to be nbdkit's
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(packages)),
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
    }


def require_nbdkit() -> None:
    """Raises NotADisk if there is no nbdkit whose Python can run the engine."""
    if shutil.which("nbdkit") is None:
        raise NotADisk(
            "serving needs nbdkit: `make serve-setup`, or install nbdkit and nbdkit-plugin-python"
        )
    dumped = subprocess.run(
        ["nbdkit", "python", "--dump-plugin"], capture_output=True, text=True, timeout=30
    )
    found = re.search(r"^python_version=(\d+\.\d+)", dumped.stdout, re.MULTILINE)
    if found is None:
        raise NotADisk(
            "serving needs nbdkit's Python plugin: `make serve-setup`, or install nbdkit-plugin-python"
        )
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if found[1] != ours:
        raise NotADisk(
            f"nbdkit runs Python {found[1]}, this is {ours}: make the virtual environment with Python {found[1]}"
        )


def most_bytes(geometry: Shape) -> int:
    """The longest write that the disk can always take: a whole number of blocks."""
    header = 2 * RECORD_UNIT
    if not isinstance(geometry, Geometry):
        most = min(USUAL_BYTES, getattr(geometry, "longest_write", USUAL_BYTES))
    elif geometry.log_bytes >= header + RECORD_UNIT + geometry.segment_bytes:
        most = min(max(USUAL_BYTES, geometry.segment_bytes), MOST_BYTES)
    else:
        most = geometry.log_bytes - header
    return most // geometry.block_bytes * geometry.block_bytes


def _require_free(path: Path) -> None:
    """Remove a socket that nobody listens on any more. Raises NotADisk if somebody does, or it is something else."""
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
