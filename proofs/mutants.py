"""Small changes to the definitions, each of which must break a proof: what `make nightly` runs
after the build.

python mutants.py                       all of them
python mutants.py Leg.v Parity.v        those of some files
python mutants.py --sample 12 --seed 3  so many, drawn from those

A mutant with a `witness` is planted in its file, and the proofs of that file are left out. The
witness, a file that computes what the definitions do, must break, and nothing that it needs.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

PROOFS = Path(__file__).parent
FEWEST = 20
PROOF = re.compile(r"Proof\.((?!Proof\.).)*?Qed\.", re.S)
# Built first, with all between it and the definitions of each file: what is most likely to break,
# and in a minute.
NEAREST = {
    "VirtualDisk.v": "VirtualDiskWitnesses",
    "RecordedTrace.v": "VirtualDiskWitnesses",
    "Checker.v": "VirtualDiskWitnesses",
    "LogStructuredDisk.v": "LogStructuredDiskWitnesses",
    "SharedTree.v": "SharedTreeExamples",
    "TreeIndex.v": "TreeIndexMaps",
    "TreeDisk.v": "TreeDiskRefinement",
    "TreeBlocks.v": "TreeStoreTheorem",
    "TreeRoots.v": "TreeStoreTheorem",
    "TreeStore.v": "TreeStoreTheorem",
    "ProvedTreeMaps.v": "ProvedTreeDiskRequests",
    "ProvedTreeDisk.v": "ProvedTreeDiskTheorem",
    "DiskMachine.v": "ProvedDiskRefinement",
    "DiskMachineProgress.v": "DiskMachineProgress",
    "RecordedSnapshots.v": "TreeLegDiskTheorem",
    "ProvedTreeDiskBounds.v": "ProvedTreeDiskBounds",
    "ProvedDiskBounds.v": "ProvedDiskBounds",
    "Redundancy.v": "RedundancyWitnesses",
    "Parity.v": "RedundancyWitnesses",
    "ProvedDisk.v": "ProvedDiskRefinement",
    "Medium.v": "ProvedDiskRefinement",
    "Devices.v": "LegRefine",
    "Codec.v": "Sectors",
    "Sectors.v": "Sectors",
    "ProvedDiskInvariant.v": "ProvedDiskRefinement",
    "ByteBlocks.v": "ProvedDiskExecution",
    "Leg.v": "LegRefine",
    "LegCode.v": "LegCode",
    "LegProgress.v": "LegProgress",
    "LegDiskMachine.v": "LegDiskRefinement",
    "LegDiskUpkeep.v": "LegDiskUpkeep",
    "OverlappingDiskChecker.v": "OverlappingDiskSwaps",
    "OverlappingDiskProposals.v": "OverlappingDiskProposals",
    "OverlappingDiskQueue.v": "OverlappingDiskQueue",
    "RecordedImplementation.v": "OverlappingDiskQueue",
    "ServedDiskTheorem.v": "ServedDiskTheorem",
    "ServedDiskScheduler.v": "ServedDiskScheduler",
    "ServedDiskPower.v": "ServedDiskPower",
    "ServedDiskPrograms.v": "ServedDiskPrograms",
    "ServedDiskProgress.v": "ServedDiskProgress",
    "ServedLegProgress.v": "ServedLegProgress",
    "ServedDiskServer.v": "ServedDiskServer",
    "SplitFlush.v": "PipelinedMachine",
    "PipelinedMachine.v": "PipelinedDiskWitnesses",
    "SparePlaces.v": "PipelinedDisk",
    "PipelinedProgress.v": "PipelinedProgress",
    "WriteBack.v": "WriteBackRefinement",
    "WriteBackPlaces.v": "WriteBackProgress",
    "WriteBackLeg.v": "WriteBackLegRefinement",
    "WriteBackLegProgress.v": "WriteBackLegProgress",
}


def survives(mutant: dict[str, str]) -> str:
    """Return why the mutant counts as surviving: nothing breaks, or it does not compile by itself.
    Empty if a proof breaks."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "proofs"
        shutil.copytree(PROOFS, copy, copy_function=shutil.copy2)
        path = copy / "theories" / mutant["file"]
        text = path.read_text()
        places = list(re.finditer(spaced(mutant["old"]), text))
        if len(places) != 1:
            return f"{mutant['old']!r} is {len(places)} times in {mutant['file']}"
        text = text[: places[0].start()] + mutant["new"] + text[places[0].end() :]
        if witness := mutant.get("witness"):
            path.write_text(PROOF.sub("Proof. Admitted.", text))
            return escapes(copy, witness)
        path.write_text(text)
        alone = make(copy, f"theories/{mutant['file']}o")
        if alone.returncode:
            # Only a proof may break in the file itself: an ill-typed definition is no mutant.
            return (
                ""
                if "(in proof" in alone.stdout or in_proof(path, alone.stdout)
                else f"does not compile: {alone.stdout}"
            )
        nearest = make(copy, f"theories/{NEAREST[mutant['file']]}.vo")
        return (
            ""
            if nearest.returncode or make(copy, "theories").returncode
            else "every proof still holds"
        )


def escapes(copy: Path, witness: str) -> str:
    """Return what is wrong if the witness does not break, or something else does. Empty if it
    breaks."""
    done = make(copy, f"theories/{witness}.vo")
    if not done.returncode:
        return f"{witness} still holds"
    return "" if f'"./theories/{witness}.v"' in done.stdout else f"not {witness}: {done.stdout}"


def spaced(old: str) -> str:
    """Return a pattern for the text, wherever its lines are broken."""
    return r"\s+".join(map(re.escape, old.split()))


def make(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-s", target],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def in_proof(path: Path, message: str) -> bool:
    """Return whether the line that coqc complains of stands in a proof."""
    if "line " not in message:
        return False
    line = int(message.split("line ")[1].split(",")[0])
    before = path.read_text().splitlines()[:line]
    for text in reversed(before):
        if "Proof" in text:
            return True
        if text.startswith(("Definition", "Fixpoint", "Inductive", "Record", "Lemma", "Theorem")):
            return False
    return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    mutants = [
        mutant
        for mutant in tomllib.loads((PROOFS / "mutants.toml").read_text())["mutant"]
        if not chosen.files or mutant["file"] in chosen.files
    ]
    all_of_them = not chosen.files and chosen.sample is None
    if chosen.sample is not None:
        mutants = random.Random(chosen.seed).sample(mutants, min(chosen.sample, len(mutants)))
    survivors = 0
    for mutant in mutants:
        wrong = survives(mutant)
        survivors += bool(wrong)
        print(
            f"{'SURVIVES' if wrong else 'broken'}  {mutant['file']}: {mutant['change']}"
            + (f": {wrong}" if wrong else ""),
            flush=True,
        )
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants break a proof")
    return 1 if survivors or (all_of_them and len(mutants) < FEWEST) else 0


if __name__ == "__main__":
    sys.exit(main())
