"""The commands of `python -m modelcheck`, one file each, and `output`, which prints for all."""
