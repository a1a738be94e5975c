"""The commands of `python -m crosscheck`, one file each."""
