"""The guest's first file system: the agent as `/init`, and the modules of its kernel.

The archive is in the "newc" format of cpio
(Documentation/driver-api/early-userspace/buffer-format.rst of Linux)."""

import gzip
import lzma
import os
import subprocess
from pathlib import Path

from conformance.targets.base import Unusable

AGENT = Path(__file__).parent / "agent"
LONG_FP_REGISTERS = Path(__file__).parent / "host" / "long_fp_registers.c"
BUILT = Path("build/kernel")
NILFS_UTILS = Path("/usr/include/nilfs.h")  # with it come the libraries of NILFS2's cleaner
COMPILE = ("cc", "-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror")
FILE, FOLDER = 0o100755, 0o040755


def agent(built: Path) -> Path:
    """Return the agent's program; it is compiled if a source is newer.

    Raises Unusable if it cannot be.
    """
    cleaner = ("-DNILFS_UTILS", "-lnilfsgc", "-lnilfs") if NILFS_UTILS.exists() else ()
    return _compiled(built / "agent", sorted(AGENT.glob("*.[ch]")), "-static", last=cleaner)


def long_fp_registers(built: Path) -> Path:
    """Return the library that user-mode Linux needs on processors with AMX. Raises Unusable."""
    return _compiled(built / "long_fp_registers.so", [LONG_FP_REGISTERS], "-shared", "-fPIC")


def _compiled(program: Path, sources: list[Path], *how: str, last: tuple[str, ...] = ()) -> Path:
    if program.exists() and program.stat().st_mtime >= max(s.stat().st_mtime for s in sources):
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")  # workers may compile at the same time
    try:
        subprocess.run(
            [*COMPILE, *how, "-o", fresh, *(s for s in sources if s.suffix == ".c"), *last],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise Unusable("there is no C compiler, which the guest needs") from None
    except subprocess.CalledProcessError as error:
        raise Unusable(f"{program.name} does not compile", error.stderr) from None
    fresh.replace(program)
    return program


def modules(folder: Path, wanted: tuple[str, ...]) -> list[Path]:
    """Return the files of these modules and of what they need, in the order of loading.

    `folder` is the one of the kernel's version. What is not there is taken to be built in."""
    needs: dict[str, tuple[str, list[str]]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[Path(path).name.partition(".")[0]] = path, others.split()
    ordered: dict[str, None] = {}
    for name in wanted:
        if name in needs:
            own, below = needs[name]
            ordered.update(dict.fromkeys([*reversed(below), own]))
    return [folder / path for path in ordered]


def plain(path: Path) -> str:
    """Return the name of a module's file, as it is when it is unpacked."""
    return path.name.removesuffix(".xz").removesuffix(".gz")


def content(path: Path) -> bytes:
    """Return what a module's file holds, unpacked."""
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)
    return unpack(path.read_bytes())


def archive(files: dict[str, bytes]) -> bytes:
    """Return a cpio archive of these files; folders are made for them."""
    parts = [_entry(name, FOLDER, b"") for name in ("dev", "sys", "proc", "mnt", "m")]
    parts += [_entry(name, FILE, data) for name, data in files.items()]
    return b"".join([*parts, _entry("TRAILER!!!", 0, b"")])


def _entry(name: str, mode: int, data: bytes) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
