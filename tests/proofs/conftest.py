"""The tools of proofs/ are scripts; tests import them from there."""

import sys
from pathlib import Path

PROOFS = Path(__file__).parents[2] / "proofs"
sys.path[:0] = [str(PROOFS), str(PROOFS / "disk")]
