"""What a pass is worth, from a run of the self-test.

    conformance selftest --seed 2 --json matrix.json
    python tests/support/found_by_traces.py matrix.json

writes conformance/reports/found_by_traces.json.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path

from conformance.reports.worth import FOUND
from refmodel.bugs import BUGS

ABOUT = (
    "traces until the model or scrub found each planted bug, null if neither did, and what the "
    "shortest trace needs: tests/support/found_by_traces.py"
)


def main() -> None:
    """Write the file."""
    hunts = {hunt["bug"]: hunt for hunt in json.loads(Path(sys.argv[1]).read_text())}
    bugs = {
        bug: {
            "traces": hunts[bug]["traces"] if hunts[bug]["good"] else None,
            "needs": hunts[bug]["needs"],
        }
        for bug in BUGS
    }
    text = json.dumps({"about": ABOUT, "bugs": bugs}, indent=1)
    Path(str(files("conformance.reports") / FOUND)).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
