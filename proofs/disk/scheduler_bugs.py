"""Plant bugs in the scheduler of the proved disk: whatever it proposes, the disk never returns
wrong data.

python proofs/disk/scheduler_bugs.py [TRACES] [--trees]
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

PROOFS = Path(__file__).parents[1]
SOURCES = PROOFS / "build" / "disk"  # where `make disk` left what it compiled
ORDER = [
    "version",
    "field",
    "proved_core",
    "bytes_blocks",
    "device",
    "maps",
    "scheduler",
    "engine",
    "plan",
    "words",
    "adapter",
    "seals",
    "pieces",
    "mirror_set",
    "mirror_adapter",
    "mirror_commands",
    "outbox",
    "nbd",
    "control",
    "server",
    "main",
]


def built(
    folder: Path, bug: dict[str, str], file: str = "scheduler.ml", *also: dict[str, str]
) -> Path:
    """Return the disk with the bug, which may be several changes of one file, linked in `folder`.

    Only the file and those behind it are compiled again. Raises SystemExit if the bug does not fit
    the source."""
    for path in SOURCES.iterdir():
        if path.suffix in {".ml", ".mli", ".cmi", ".cmx", ".c", ".o"}:
            shutil.copy(path, folder)
    source = folder / file
    text = source.read_text()
    for change in (bug, *also):
        if text.count(change["old"]) != 1:
            raise SystemExit(
                f"{bug['what']}: its text is {text.count(change['old'])} times in {file}"
            )
        text = text.replace(change["old"], change["new"])
    source.write_text(text)
    in_c = source.suffix == ".c"
    first = len(ORDER) if in_c else ORDER.index(source.stem)
    command = "ocamlfind ocamlopt -thread -package yojson,base64,cmdliner,threads.posix -linkpkg"
    compiled = [f"{name}.cmx" for name in ORDER[:first]]
    sources = [f"{name}.ml" for name in ORDER[first:]]
    sources.append("digest_blocks.c" if in_c else "digest_blocks.o")
    if source.stem == "field":  # the interface of the proved programs speaks of it
        sources.insert(1, "proved_core.mli")
    subprocess.run(
        [*command.split(), "-w", "-a", *compiled, *sources, "-o", "disk"],
        cwd=folder,
        check=True,
    )
    return folder / "disk"


def main() -> int:
    """Judge each bug by the kit. Return 1 if one does harm."""
    traces, *options = sys.argv[1:] or ["40"]
    harm = 0
    bugs = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["bug"]
    for bug in bugs:
        with TemporaryDirectory() as folder:
            program, report = built(Path(folder), bug), Path(folder) / "report.json"
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "conformance",
                    "run",
                    "--target",
                    " ".join([f"exec:{program} adapter", *options]),
                    "--traces",
                    traces,
                    "--seed",
                    "1",
                    "--jobs",
                    "1",
                    "--json",
                    report,
                ],
                cwd=PROOFS.parent,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            found = json.loads(report.read_text())
        harm += found["verdict"] == "fail"
        print(
            f"{'HARM' if found['verdict'] == 'fail' else 'harmless'}  {bug['what']}: "
            f"{found['verdict']} after {found['operations']} operations",
            flush=True,
        )
    print(f"{len(bugs) - harm} of {len(bugs)} bugs of the scheduler are harmless")
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
