"""Run TLC and Apalache, and read what they print."""
