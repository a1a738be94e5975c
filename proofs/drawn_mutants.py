"""Mutants of the functions that the proved disk runs, drawn by chance: each must break a proof.

python drawn_mutants.py 50 --seed 1     so many; the last line counts the outcomes

A mutant is one mechanical change of a definition that extraction/disk/ExtractDisk.v extracts. A
change that is ill-typed is no mutant, and another one is drawn. A survivor is a gap, unless
equivalent_mutants.toml says why it is the same program or harmless.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mutants import NEAREST, PROOFS, in_proof, make

EXTRACTION = PROOFS / "extraction" / "disk" / "ExtractDisk.v"
EXPLAINED = PROOFS / "equivalent_mutants.toml"
FUNCTION = re.compile(r"^let (?:rec )?([a-z]\w*)|^and ([a-z]\w*)", re.M)
DEFINITION = re.compile(
    r"^ *(?:Definition|Fixpoint) (\w+)(?:(?!\n\n)[\s\S])*?:=([\s\S]*?\.)$", re.M
)
COMMENT = re.compile(r"\(\*[\s\S]*?\*\)|\"[^\"]*\"%string")
# What is replaced by what. A change of type is found out by Coq.
CHANGES = [
    (r"\bS (?=[\w(])", ""),
    (r"\bpred (?=[\w(])", ""),
    (r"\bnegb (?=[\w(])", ""),
    (r"\b0\b", "1"),
    (r"\b1\b", "0"),
    (r"\b1\b", "2"),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<= )≤(?= )", "<"),
    (r"(?<= )<(?= )", "≤"),
    (r"(?<= )=(?= )", "≠"),
    (r"(?<= )∧(?= )", "∨"),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\btake\b", "drop"),
    (r"\bdrop\b", "take"),
    (r"\bfoldl\b", "foldr"),
    (r"\bomap\b", "fmap"),
    (r"[\w.]+ :: (?=[\w(])", ""),
    (r"[\w.]+ \+\+ (?=[\w(])", ""),
    (r"<\[[^\[\]]*\]> ?", ""),
    (r"\bdelete \w+ (?=[\w(])", ""),
    (r"\bFlushBlocks (?=[\w(])", ""),
    (r"\bAssume \([^()]*\) (?=[\w(])", ""),
    (r"\brev (?=[\w(])", ""),
    (r"∪", "∖"),
    (r"∖", "∪"),
    (r"\bmin\b", "max"),
    (r"\bmax\b", "min"),
]


class Mutant(NamedTuple):
    """One change of a definition, at a place in a file of theories/."""

    file: str
    name: str
    start: int
    old: str
    new: str
    around: str

    def __str__(self) -> str:
        return f"{self.file} {self.name}: {self.old!r} -> {self.new!r} in {self.around!r}"


def extracted() -> dict[str, set[str]]:
    """Return the names of the functions that are extracted, by theory."""
    with TemporaryDirectory() as folder:
        separately = re.sub(r'Extraction "[^"]*"', "Separate Extraction", EXTRACTION.read_text())
        (Path(folder) / EXTRACTION.name).write_text(separately)
        subprocess.run(
            ["coqc", "-q", "-Q", PROOFS / "theories", "LogDisk", EXTRACTION.name],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        texts = {path.stem: path.read_text() for path in Path(folder).glob("*.ml")}
    return {
        theory: {name for pair in FUNCTION.findall(text) for name in pair if name}
        for theory, text in texts.items()
    }


def population() -> Iterator[Mutant]:
    """Yield every change of every function that is extracted."""
    names = extracted()
    for path in sorted((PROOFS / "theories").glob("*.v")):
        text = path.read_text()
        bare = COMMENT.sub(lambda found: " " * len(found[0]), text)
        for definition in DEFINITION.finditer(bare):
            if definition[1] not in names.get(path.stem, ()):
                continue
            begin, end = definition.span(2)
            for old, new in CHANGES:
                for found in re.compile(old).finditer(bare, begin, end):
                    line = " ".join(text[max(begin, found.start() - 20) : found.end() + 20].split())
                    yield Mutant(path.name, definition[1], found.start(), found[0], new, line)


def outcome(mutant: Mutant) -> str:
    """Return `ill-typed`, the theory that breaks, or nothing if every proof still holds."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "proofs"
        shutil.copytree(PROOFS, copy, copy_function=shutil.copy2)
        path = copy / "theories" / mutant.file
        text = path.read_text()
        path.write_text(text[: mutant.start] + mutant.new + text[mutant.start + len(mutant.old) :])
        for target in (f"{path.stem}.vo", f"{NEAREST.get(mutant.file, path.stem)}.vo", ""):
            done = make(copy, f"theories/{target}" if target else "theories")
            if not done.returncode:
                continue
            if target == f"{path.stem}.vo":
                proof = "(in proof" in done.stdout or in_proof(path, done.stdout)
                return path.stem if proof else "ill-typed"
            broken = re.search(r'theories/(\w+)\.v"', done.stdout)
            assert broken is not None, done.stdout
            return broken[1]
    return ""


def explained() -> dict[str, str]:
    """Return why each known survivor is harmless, by its words."""
    return {one["mutant"]: one["why"] for one in tomllib.loads(EXPLAINED.read_text())["equivalent"]}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    drawn, known, counts = [*population()], explained(), Counter[str]()
    random.Random(chosen.seed).shuffle(drawn)
    print(f"{len(drawn)} changes of {len({one.name for one in drawn})} functions", flush=True)
    for mutant in drawn:
        if counts["broken"] + counts["equivalent"] + counts["SURVIVES"] >= chosen.count:
            break
        broken = outcome(mutant)
        if broken:
            kind = "ill-typed" if broken == "ill-typed" else "broken"
        else:
            kind = "equivalent" if str(mutant) in known else "SURVIVES"
        counts[kind] += 1
        if kind != "ill-typed":
            print(f"{kind:10} {mutant}  {known.get(str(mutant), broken)}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["SURVIVES"] else 0


if __name__ == "__main__":
    sys.exit(main())
