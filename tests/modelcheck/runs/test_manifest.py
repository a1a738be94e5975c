"""The front door of specs/: configs belong to modules, specs have default models, the manifest is
current."""

import subprocess
import sys

from modelcheck.checkers.tlc import SPECS


def test_each_config_belongs_to_a_module() -> None:
    """X.cfg and X-size.cfg are configs of X.tla."""
    stray = [
        path.name
        for path in SPECS.glob("*.cfg")
        if not (SPECS / f"{path.stem.split('-')[0]}.tla").exists()
    ]
    assert stray == []


def test_the_specs_that_one_begins_with_have_a_default_model() -> None:
    for spec in ("VirtualDisk", "LogStructuredDisk", "CachedDisk", "RedoLogChain"):
        assert (SPECS / f"MC{spec}.tla").exists() and (SPECS / f"MC{spec}.cfg").exists()


def test_the_manifest_is_current() -> None:
    """`python tools/specs_manifest.py` writes it anew."""
    assert (
        subprocess.run(
            [sys.executable, "tools/specs_manifest.py", "--check"], cwd=SPECS.parent
        ).returncode
        == 0
    )
