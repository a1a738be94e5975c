"""Run a target that is wrong in one way: `python conformance/selftest/corpus FAULT`; or honest, as
`none`, `honest-block`, `honest-prefix`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))  # run as a script: from any folder
from conformance.examples.dict_disk import HELLO, Answer, DictDisk, answer
from conformance.selftest.corpus.dialogues import LINES
from conformance.selftest.corpus.disks import FAULTS
from conformance.selftest.corpus.honest import HONEST


def obeys(request: Answer, response: Answer) -> None:
    """Answer as the dialogue says: one line of JSON."""
    print(json.dumps(response), flush=True)


def main() -> None:
    """Answer requests until the dialogue ends, as the target that the command line names."""
    fault = sys.argv[1]
    if fault not in FAULTS and fault not in LINES and fault not in HONEST:
        sys.exit(f"no such fault: {fault}")
    disk = {**FAULTS, **HONEST}.get(fault, DictDisk)()
    HELLO["crash_profile"] = getattr(disk, "profile", "ack")
    HELLO["capabilities"] += getattr(disk, "also", ())
    say = LINES.get(fault, obeys)
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "bye":
            break
        say(dict(request), answer(disk, request))


if __name__ == "__main__":
    main()
