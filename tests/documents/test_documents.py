"""What the documents say: links, targets of make, counts, and the example of the README."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from refmodel.bugs.registry import BUGS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
OWN_MAKEFILE = ("proofs",)  # folders whose pages speak of a Makefile of their own
COLUMNS = 100


def pages() -> list[Path]:
    """Return the Markdown pages of the project."""
    listed = [*ROOT.glob("*.md")]
    for folder in ("docs", "specs", "proofs", "conformance", "experiments", "workloads"):
        listed += (ROOT / folder).rglob("*.md")
    return sorted(listed)


def wrapped() -> list[Path]:
    """Return the pages whose text is wrapped: those that engineers read and change most."""
    others = [ROOT / "specs" / "README.md", ROOT / "proofs" / "README.md"]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *others]
    return sorted(pages)


def anchors(page: Path) -> set[str]:
    """Return what a link into the page may name: its headings, as GitHub names them, and ids."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).lower() for line in headings]
    return {re.sub(r"[^\w\- ]", "", line.strip()).replace(" ", "-") for line in plain} | {
        *re.findall(r'<a id="([^"]+)">', text)
    }


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), f"{page.name} links to {link}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_target_of_make_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it may speak of targets that are gone
    files = [ROOT / "Makefile", *(ROOT / folder / "Makefile" for folder in OWN_MAKEFILE)]
    own = page.parent.name in OWN_MAKEFILE
    rules = "\n".join(file.read_text() for file in files[: None if own else 1])
    targets = {*re.findall(r"^([a-z][\w-]*):", rules, re.M)}
    assert {*re.findall(r"`make ([a-z][\w-]*)", page.read_text())} <= targets


def too_long(text: str) -> list[str]:
    """Return the lines beyond COLUMNS, without tables and what stands between fences."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [line for line in prose.splitlines() if len(line) > COLUMNS and not line.startswith("|")]


@pytest.mark.parametrize("page", wrapped(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_text_of_a_page_is_wrapped(page: Path) -> None:
    assert too_long(page.read_text()) == []


def test_the_counts_of_the_readme_are_true() -> None:
    assumptions = (ROOT / "proofs" / "theories" / "Assumptions.v").read_text()
    bundle = re.search(r"Definition all_theorems :=(.*?)\]\.", assumptions, re.S)
    assert bundle
    theorems = bundle[1].count("@")  # each is printed with what it assumes
    index = (ROOT / "docs" / "findings" / "README.md").read_text()
    findings = index.partition("## Runs")[0].count("\n| ") - 1  # without the heading
    assert f"{theorems} theorems" in README
    assert f"{len(BUGS)} bugs are planted" in README and f"(one of {len(BUGS)})" in README
    assert f"the kit has {findings} findings" in README


def test_readme_and_makefile_agree_how_long_the_tests_take() -> None:
    shown = re.search(r"^    make test .*\((\d+) minutes\)$", README, re.M)
    helped = re.search(r"^test: .*\((\d+) min\)$", (ROOT / "Makefile").read_text(), re.M)
    assert shown and helped and shown[1] == helped[1]


def test_the_counts_of_the_self_test_are_true() -> None:
    text = (ROOT / "docs" / "self-test.md").read_text()
    assert {*re.findall(r"oday (\d+) bugs are planted", text)} == {str(len(BUGS))}


def test_every_theorem_of_the_proved_disk_that_is_listed_exists() -> None:
    page = (ROOT / "docs" / "proved-disk-theorems.md").read_text()
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    sources = (ROOT / "proofs" / "theories").glob("*.v")
    stated = r"^ *(?:Theorem|Lemma|Definition|Fixpoint|Record|Inductive) (\w+)"
    known = {name for file in sources for name in re.findall(stated, file.read_text(), re.M)}
    named = {*re.findall(r"`([a-z]\w*_\w*[a-z0-9])`", rows)}
    assert named and named <= known, named - known


def test_what_a_spec_says_to_break_and_to_run_exists() -> None:
    specs = ROOT / "specs"
    texts = {file.stem: file.read_text() for file in specs.glob("*.tla")}
    stated = r"^([A-Z]\w*)(?:\([^=]*\))? *=="
    operators = {name for text in texts.values() for name in re.findall(stated, text, re.M)}
    models = {*texts, *(file.stem for file in specs.glob("*.cfg"))}
    named: set[str] = set()
    for text in texts.values():
        advice = text.partition("How to break it:")[2].partition("(****")[0]
        words = " ".join(re.sub(r"\(\*|\*\)", "", advice).split())
        named |= {*re.findall(r"\blet ([A-Z]\w*)", words)}
        assert {*re.findall(r"\bMC[\w-]*\w", words)} <= models
    assert named and named <= operators, named - operators


def test_the_counts_of_the_mutants_of_proofs_are_true() -> None:
    mutants = tomllib.loads((ROOT / "proofs" / "mutants.toml").read_text())["mutant"]
    witnessed = sum("witness" in mutant for mutant in mutants)
    text = (ROOT / "proofs" / "README.md").read_text()
    assert f"plant {len(mutants)} small changes" in text and f"or for {witnessed} of\n" in text


def test_the_example_of_the_readme_fails_as_shown(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.S)
    assert example
    (tmp_path / "mine.py").write_text(example[1])
    command = ["run", "--target", f"exec:{sys.executable} mine.py", "--traces", "20", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *command, "--no-keep", "--json", "found.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    failures = json.loads((tmp_path / "found.json").read_text())["failures"]
    assert ("missing-refusal", 1) in [(found["class"], found["operations"]) for found in failures]
