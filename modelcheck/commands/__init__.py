"""The commands of `python -m modelcheck`: a file each, and `output`, what they print by."""
