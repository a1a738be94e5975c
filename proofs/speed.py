"""How fast the certified checker judges a long trace: operations per CPU second,
and the ratio to what is asked of it."""

import json
import resource
import subprocess
import tempfile
from pathlib import Path

from conformance.judging.oracles import certified

ASKED = 200_000  # operations a second
BLOCKS = 4096
PAIRS = 500_000  # a write, and the read that has to see it


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.jsonl"
        with path.open("w") as file:
            print('{"trace":1,"hello":{"crash_profile":"ack"}}', file=file)
            print(f'{{"op":"create","blocks":{BLOCKS},"result":{{"ok":true}}}}', file=file)
            for tag in range(PAIRS):
                lba = tag * 769 % BLOCKS  # every block in turn, neighbours far apart
                print(
                    f'{{"op":"write","lba":{lba},"tags":[{tag}],"result":{{"ok":true}}}}', file=file
                )
                print(
                    f'{{"op":"read","lba":{lba},"count":1,"result":{{"ok":true,"tags":[{tag}]}}}}',
                    file=file,
                )
        verdict = json.loads(
            subprocess.run([certified.oracle(), path], capture_output=True, check=True).stdout
        )
    if not verdict["accepted"]:
        raise SystemExit(f"speed: the trace is honest, and was not accepted: {verdict}")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = spent.ru_utime + spent.ru_stime
    rate = 2 * PAIRS / seconds
    print(
        f"speed     {2 * PAIRS:,} operations judged in {seconds:.1f} s of CPU time: "
        f"{rate:,.0f}/s, {rate / ASKED:.2f} of the {ASKED:,}/s asked"
    )


if __name__ == "__main__":
    main()
