"""Count the lines of each stage of the proved disk: statement, proof, and trusted code.

`python proofs/stages.py` prints the figures of the table in docs/proved-disk.md.
"""

import re
import subprocess
from collections import Counter

from gates import trusted
from trust_gates import THEORIES

# A theory belongs to the first stage of which a pattern matches its whole name.
STAGES = {
    "0": r"VirtualDisk.*|Recorded.*|Checker.*|OverlappingDisk(?!Queue).*",  # contract, checkers
    "8": r"WriteBack.*|LegRepair|LegDiskRot",
    "7": r"Sectors|SplitFlush|SparePlaces|Pipelined.*|ProvedDisk(Records|LongRecords)",
    "6": r"Tree(Index|Disk|Blocks|Roots|Store|Leg|Recovery).*|ProvedTree.*",
    "5": r"OverlappingDiskQueue.*|Served.*",
    "4": r"Devices|Leg.*|Progress|RequestProgress|ProvedDisk(Bounds|Answers)",
    "3": r"Codec|ByteBlocks|ProvedDisk.*|DiskMachine.*",
    "2": r"Medium",
    "1": r"LogStructuredDisk.*|SharedTree.*|Redundancy.*|Parity|Composition.*",
    "restated": r".*Theorems|Assumptions",
}
# Trusted code by the parts of the gate `size`.
CODE = {
    "0": ("oracle",),
    "3": ("disk", "digest"),
    "4": ("mirrors", "parity"),
    "5": ("server",),
    "6": ("trees",),
    "8": ("seals",),
}


def stage_of(theory: str) -> str:
    return next(stage for stage, names in STAGES.items() if re.fullmatch(names, theory))


def main() -> None:
    counted = subprocess.run(["coqwc", *THEORIES], capture_output=True, text=True, check=True)
    files, statement, proof = Counter[str](), Counter[str](), Counter[str]()
    for path, line in zip(THEORIES, counted.stdout.splitlines()[1:], strict=False):
        stage = stage_of(path.stem)
        stated, proved, *_ = line.split()
        files[stage] += 1
        statement[stage] += int(stated)
        proof[stage] += int(proved)
    code = trusted()
    print(f"{'stage':10}{'files':>6}{'statement':>11}{'proof':>8}{'trusted':>9}")
    for stage in sorted(STAGES):
        lines = sum(code[part] for part in CODE.get(stage, ()))
        print(f"{stage:10}{files[stage]:6}{statement[stage]:11,}{proof[stage]:8,}{lines:9}")
    print(
        f"{'all':10}{files.total():6}{statement.total():11,}{proof.total():8,}"
        f"{sum(code.values()):9,}"
    )


if __name__ == "__main__":
    main()
