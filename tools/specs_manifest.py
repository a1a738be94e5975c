"""Writes specs/manifest.json, in the form of the TLA+ examples' repository, from specs/models.toml.

`python tools/specs_manifest.py` writes it; with `--check` it only says whether it is current
(exit status 1 if it is not)."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

SPECS = Path(__file__).resolve().parent.parent / "specs"
MANIFEST = SPECS / "manifest.json"
RESULTS = {"ok": "success", "Deadlock": "deadlock failure"}


def manifest() -> dict[str, Any]:
    """Return the modules of specs/, each with its runs of models.toml."""
    runs = tomllib.loads((SPECS / "models.toml").read_text())["run"]
    modules = sorted(path.stem for path in SPECS.glob("*.tla"))
    return {
        "sources": [],
        "authors": [],
        "tags": [],
        "modules": [
            {
                "path": f"specs/{module}.tla",
                "features": [],
                "models": [model(run) for run in runs if run["module"] == module],
            }
            for module in modules
        ],
    }


def model(run: dict[str, Any]) -> dict[str, Any]:
    """Return one run as the manifest has it. Runs of Apalache have a module and no config."""
    symbolic = run.get("tool") == "apalache"
    file = f"{run['module']}.tla" if symbolic else f"{run.get('config', run['module'])}.cfg"
    seconds = run.get("seconds")
    entry = {
        "path": f"specs/{file}",
        "runtime": f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        if seconds
        else "unknown",
        "mode": mode(run),
        "result": RESULTS.get(run.get("expect", "ok"), "safety failure"),
    }
    counts = {"distinctStates": run.get("distinct"), "stateDepth": run.get("depth")}
    return entry | {key: value for key, value in counts.items() if value is not None}


def mode(run: dict[str, Any]) -> str | dict[str, Any]:
    """Return how the run searches."""
    if "simulate" in run:
        return {"simulate": {"traceCount": run["simulate"]}}
    return "symbolic" if run.get("tool") == "apalache" else "exhaustive search"


def main() -> int:
    """Write the manifest, or compare it. Returns the exit status."""
    text = json.dumps(manifest(), indent=2) + "\n"
    if sys.argv[1:] == ["--check"]:
        return 0 if MANIFEST.exists() and MANIFEST.read_text() == text else 1
    MANIFEST.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
