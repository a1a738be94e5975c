"""The gates of the proofs, after a build: what `make check` runs. Each prints a line, or says what
is wrong."""

import re
import subprocess
import sys
import time

from trust_gates import (
    PROOFS,
    RECORD,
    STATED,
    THEORIES,
    Broken,
    checked_again,
    code,
    flags,
    no_assumption,
    no_escape,
    nothing_foreign,
    printed_statements,
    statements,
)

ROOT = PROOFS.parent
CLOSED = "Closed under the global context"
MOST_LINES = 700  # per file
MOST_COLUMNS = 110
MOST_PROOF = 110  # lines of one proof: what takes more is cut into lemmas
MOST_SECONDS = 40  # of CPU time, per file; on a slow machine more, but at most
MOST_SHARE = 0.05  # of the CPU time of all files
MOST_TRUSTED = {
    "oracle": 300,
    "disk": 790,  # what maps the parity of the proof, flushes in a thread, and write-back included
    "mirrors": 492,  # several devices
    "seals": 57,  # the digests by which they know what has rotted, and which device it is
    "parity": 68,  # pieces of blocks, and bytes that stand for vectors of the proof
    "server": 440,
    "trees": 95,  # whole maps or trees, with write-back or without
    "digest": 55,  # in C
}  # lines of OCaml and C, and of what maps Coq to it
# What the proved programs check.
UNTRUSTED = ("scheduler.ml", "plan.ml", "facts.ml", "lookahead.ml", "tried.ml", "propose.ml")
# By the folder of the file.
PARTS = {
    "extraction": "oracle",
    "disk": "disk",
    "mirrors": "mirrors",
    "seals": "seals",
    "parity": "parity",
    "serving": "server",
    "trees": "trees",
    "digest": "digest",
}


def bundled(name: str) -> list[str]:
    """Return the names that the definition `name` of Assumptions.v bundles for Print Assumptions,
    without their modules."""
    text = code(PROOFS / "theories" / "Assumptions.v")
    bundle = re.search(rf"Definition {name} :=(.*?)\]\.", text, re.S)
    printed = re.search(
        r"Definition (\w+) := \[all of ([\w; ]+)\]\.\s*Print Assumptions \1\.", text
    )
    if not printed or name not in printed[2].split("; "):
        raise Broken(f"Assumptions.v does not print what {name} assumes")
    return (
        [word.rpartition(".")[2] for word in re.findall(r"@([\w.]+)", bundle[1])] if bundle else []
    )


def stated() -> list[str]:
    return [name for path in STATED for name in re.findall(r"^Theorem\s+(\w+)", code(path), re.M)]


def assumptions() -> str:
    """Check that the assumptions of every theorem and counterexample are printed, and that there
    are none, as recorded."""
    theorems, others = bundled("all_theorems"), bundled("all_counterexamples")
    if stated() != theorems:
        raise Broken(
            "theorems whose assumptions are not printed, in order: "
            f"{sorted(set(stated()) ^ set(theorems))}"
        )
    answer = (PROOFS / "build" / "assumptions").read_text().split("\n")
    if answer != [CLOSED, ""]:
        raise Broken("\n".join(answer))
    found = [f"{name}: {CLOSED}" for name in theorems + others]
    record = (PROOFS / "axioms.expected").read_text().splitlines()
    if found != record:
        raise Broken(f"axioms.expected differs: {sorted(set(found) ^ set(record))}")
    return f"{len(theorems)} theorems and {len(others)} counterexamples, each: {CLOSED}"


def counterexamples() -> str:
    """Check that the README has, for each theorem that is no witness itself, what it needs and the
    counterexample without it."""
    found = tables((PROOFS / "README.md").read_text())
    witnesses = {
        name for row in found["What is proved"] if row[0] == "12" for name in names_of(row[-3])
    }
    rows = found["What each theorem needs"]
    covered = [name for row in rows for name in names_of(row[0])]
    named = {name for row in rows for name in names_of(row[2])}
    wrong = [
        f"{name} has no counterexample"
        for name in stated()
        if name not in covered and name not in witnesses
    ]
    wrong += [f"{name} is no theorem" for name in covered if name not in stated()]
    wrong += [
        f"nothing shows what {row[0]} needs"
        for row in rows
        if not names_of(row[2]) and row[1] != "no hypothesis"
    ]
    wrong += [
        f"{name} is not both in the table and in all_counterexamples"
        for name in sorted(named ^ set(bundled("all_counterexamples")))
    ]
    if wrong:
        raise Broken("\n".join(wrong))
    return f"{len(covered)} theorems, each with what it needs, by {len(named)} counterexamples"


def times() -> str:
    """Check that no file takes long, or, on a slow machine, a large share of the CPU time of all.
    Return how long the whole run and the slowest file took, in CPU seconds."""
    spent = {
        path.stem: float(re.findall(r"^seconds ([\d.]+)$", path.read_text(), re.M)[-1])
        for path in (PROOFS / "build").glob("*.time")
    }
    if missing := {path.stem for path in THEORIES} - set(spent):
        raise Broken(f"no time was taken of {sorted(missing)}")
    path = PROOFS / "build" / "took"
    took = f"{path.read_text().strip()} s from clean, " if path.exists() else ""
    slowest = max(spent, key=lambda name: spent[name])
    share = spent[slowest] / sum(spent.values())
    found = (
        f"{took}{sum(spent.values()):.0f} s of CPU time to build, "
        f"{slowest}.v the most with {spent[slowest]:.0f} s ({share:.1%})"
    )
    if spent[slowest] > MOST_SECONDS and share > MOST_SHARE:
        raise Broken(f"{found}, at most {MOST_SECONDS} s or {MOST_SHARE:.0%}")
    return found


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of all tables of a chapter (##) of a Markdown text, without header rows."""
    found: dict[str, list[list[str]]] = {}
    chapter = ""
    for line in text.splitlines():
        if line.startswith("## "):
            chapter = line.removeprefix("## ")
        elif line.startswith("|-"):
            found[chapter].pop()  # the line above it is a header row
        elif line.startswith("|"):
            found.setdefault(chapter, []).append(
                [cell.strip() for cell in line.strip("|").split("|")]
            )
    return found


def names_of(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def claims() -> str:
    """Check that every identifier in the README's tables of claims and files is defined where it
    says."""
    defined = {
        path.stem: set(
            re.findall(
                r"^\s*(?:Theorem|Lemma|Corollary|Definition|Fixpoint|Inductive|Record|Class|Notation|\|)\s+(\w+)",
                code(path),
                re.M,
            )
        )
        for path in THEORIES
    }
    found, wrong, theorems = 0, [], stated()
    text = (PROOFS / "README.md").read_text()
    for number, *_, identifiers, file, counterpart in tables(text)["What is proved"]:
        for identifier in names_of(identifiers):
            found += 1
            if identifier not in theorems:
                wrong.append(f"{number}: {identifier} is not stated")
        wrong += [
            f"{number}: no file {name}"
            for name in names_of(file)
            if not (PROOFS / "theories" / name).exists()
        ]
        wrong += [f"{number}: no {name}" for name in names_of(counterpart) if not present(name)]
    listed = [name for row in tables(text)["Files"] for name in names_of(row[0])]
    wrong += [f"no file {name}" for name in listed if not (PROOFS / name).exists()]
    wrong += [
        f"{path.name} is not in the table of files"
        for path in THEORIES
        if f"theories/{path.name}" not in listed
    ]
    for word in re.findall(r"`([A-Za-z_][\w']*)`", text):
        if (
            not present(word)
            and not any(word in names for names in defined.values())
            and not any(
                re.search(rf"\b{word}\b", p.read_text())
                for p in [
                    *THEORIES,
                    PROOFS / "Makefile",
                    *(PROOFS / "extraction").rglob("*.*"),
                    *PROOFS.glob("*gates.py"),
                ]
            )
        ):
            wrong.append(f"{word} is named in the README and nowhere else")
    if wrong:
        raise Broken("\n".join(wrong))
    return f"{found} identifiers of {len(tables(text)['What is proved'])} claims exist"


def present(name: str) -> bool:
    """Return whether `Module` or `Module!Name` is a specification with that definition."""
    module, _, definition = name.partition("!")
    spec = ROOT / "specs" / f"{module}.tla"
    return spec.exists() and (
        not definition or re.search(rf"^{definition}\b.*==", spec.read_text(), re.M) is not None
    )


PATTERNS = {  # how each source spells a name: a TLA+ operator, a constructor, a function, an event
    ".tla": r"^{}\b[^\n]*==",
    ".v": r"^\s*\| {}\b(?![^\n]*=>)",
    ".py": r'^\s*(def {0}\(|case "{0}":)',
    ".json": r'"const": "{}"',
}

EMITTED = r'emit\(\s*"{}"'


def one_name() -> str:
    """Check that an action has one name: TLA+ action, Coq constructor, Python method and trace
    event are each in their source."""
    wrong, rows = [], tables((PROOFS / "README.md").read_text())["One name everywhere"]
    for row in rows:
        spoken = set()
        for cell in row:
            if not cell:
                wrong.append(f"a cell of {row[0]} is empty: it takes a name, or why there is none")
            for place in names_of(cell):
                file, _, name = place.partition(":")
                path = ROOT / file
                event, _, name = name.rpartition(" ")
                spoken.add(re.sub(r"_", "", name).lower())
                pattern = (EMITTED if event else PATTERNS[path.suffix]).format(re.escape(name))
                if not path.exists() or not re.search(
                    pattern, code(path) if path.suffix == ".v" else path.read_text(), re.M
                ):
                    wrong.append(f"{file} has no {name}")
        if len(spoken) > 1:
            wrong.append(f"one action, several names: {sorted(spoken)}")
    if wrong:
        raise Broken("\n".join(wrong))
    places = sum(len(names_of(cell)) for row in rows for cell in row)
    return f"{len(rows)} actions have one name each in {places} places"


def long_proofs(text: str) -> list[tuple[int, int]]:
    """Return the proofs of a file without comments that have more than `MOST_PROOF` lines: the
    line on which each begins, counted from 1, and its lines."""
    found, began = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*Proof\b", line):
            began = number
        if re.search(r"\b(Qed|Defined)\.", line) and number - began + 1 > MOST_PROOF:
            found.append((began, number - began + 1))
    return found


def trusted() -> dict[str, int]:
    """Return how many lines of OCaml and of mappings the checker rests on, how many the disk, and
    how many more a disk on mirrors, and one that is served."""
    files = [path for path in (PROOFS / "extraction").rglob("*") if path.is_file()]
    found = dict.fromkeys(MOST_TRUSTED, 0)
    for path in files:
        if path.name not in UNTRUSTED:
            lines = len(path.read_text().splitlines())
            found[PARTS[path.parent.name]] += lines
    return found


def size() -> str:
    """Check that no file and no proof is long, and that the trusted code is small. Lines of files
    are counted as coqwc does: no blanks, no comments."""
    total = subprocess.run(["coqwc", *THEORIES], capture_output=True, text=True, check=True)
    *files, last = [line.split() for line in total.stdout.splitlines()[1:]]
    wrong = [
        f"{file[3]} has {int(file[0]) + int(file[1])} lines (at most {MOST_LINES})"
        for file in files
        if int(file[0]) + int(file[1]) > MOST_LINES
    ]
    wrong += [
        f"{path.name}:{number}: {len(line)} columns (at most {MOST_COLUMNS})"
        for path in THEORIES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    wrong += [
        f"{path.name}:{number}: a proof of {lines} lines (at most {MOST_PROOF})"
        for path in THEORIES
        for number, lines in long_proofs(code(path))
    ]
    found = trusted()
    wrong += [
        f"{lines} lines of the {name} are trusted (at most {MOST_TRUSTED[name]})"
        for name, lines in found.items()
        if lines > MOST_TRUSTED[name]
    ]
    if wrong:
        raise Broken("\n".join(wrong))
    rests = ", ".join(f"{lines} trusted of the {name}" for name, lines in found.items())
    return f"{last[0]} lines of statement, {last[1]} of proof, {rests}"


def main() -> int:
    if sys.argv[1:] == ["record"]:
        RECORD.write_text(printed_statements())
        return 0
    broken = 0
    for gate in (
        no_escape,
        no_assumption,
        nothing_foreign,
        flags,
        assumptions,
        statements,
        claims,
        counterexamples,
        one_name,
        size,
        checked_again,
        times,
    ):
        start = time.monotonic()
        try:
            print(
                f"ok      {gate.__name__}: {gate()} ({time.monotonic() - start:.0f} s)", flush=True
            )
        except Broken as found:
            broken += 1
            print(f"BROKEN  {gate.__name__}:\n{found}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
