"""Be a target that is wrong in one way: `python conformance/corpus FAULT`; or honest, as `none`,
`honest-block`, `honest-prefix`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from dialogues import LINES
from dict_disk import HELLO, DictDisk, answer
from disks import FAULTS
from honest import HONEST


def main():
    fault = sys.argv[1]
    disk = {**FAULTS, **HONEST}.get(fault, DictDisk)()
    HELLO["crash_profile"] = getattr(disk, "profile", "ack")
    say = LINES.get(fault, lambda request, response: print(json.dumps(response), flush=True))
    if fault not in FAULTS and fault not in LINES and fault not in HONEST:
        sys.exit(f"no such fault: {fault}")
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "bye":
            break
        say(dict(request), answer(disk, request))


if __name__ == "__main__":
    main()
