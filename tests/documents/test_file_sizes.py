"""What CONTRIBUTING.md says of the length of Python files."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("commandline", "conformance", "crosscheck", "experiments", "modelcheck", "proofs"),
    *("refmodel", "tests", "tools"),
)
RULE = re.search(r"at most (\d+) lines", (ROOT / "CONTRIBUTING.md").read_text())
assert RULE is not None
MOST = int(RULE[1])
REASON = f"It has more than {MOST} lines because"


def long_files() -> list[Path]:
    """Return the files that have more lines than the rule allows without a reason."""
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in files if path.read_text().count("\n") > MOST]


@pytest.mark.parametrize("path", long_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_long_file_says_why_at_its_top(path: Path) -> None:
    says = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    assert REASON in says, f"{path.name} has more than {MOST} lines, and does not say why"
