"""The guest's first file system: the agent as `/init`, and the modules of its kernel.

The archive is in the "newc" format of cpio
(Documentation/driver-api/early-userspace/buffer-format.rst of Linux)."""

import subprocess
from pathlib import Path

from conformance.targets.base import Unusable

AGENT = Path(__file__).parent / "agent"
BUILT = Path("build/kernel")
COMPILE = ("cc", "-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror", "-static")
FILE, FOLDER = 0o100755, 0o040755


def agent(built: Path) -> Path:
    """The agent's program; it is compiled if a source is newer. Raises Unusable if it cannot be."""
    program = built / "agent"
    sources = sorted(AGENT.glob("*.[ch]"))
    if program.exists() and program.stat().st_mtime >= max(s.stat().st_mtime for s in sources):
        return program
    built.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(".new")
    try:
        subprocess.run(
            [*COMPILE, "-o", fresh, *(s for s in sources if s.suffix == ".c")],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise Unusable("there is no C compiler, which the guest's agent needs") from None
    except subprocess.CalledProcessError as error:
        raise Unusable("the guest's agent does not compile", error.stderr) from None
    fresh.replace(program)
    return program


def modules(folder: Path, wanted: tuple[str, ...]) -> list[Path]:
    """The files of these modules and of what they need, in the order of loading.

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


def archive(files: dict[str, bytes]) -> bytes:
    """A cpio archive of these files; folders are made for them."""
    parts = [_entry(name, FOLDER, b"") for name in ("dev", "sys", "proc", "mnt", "m")]
    parts += [_entry(name, FILE, data) for name, data in files.items()]
    return b"".join([*parts, _entry("TRAILER!!!", 0, b"")])


def _entry(name: str, mode: int, data: bytes) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
