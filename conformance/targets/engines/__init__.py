"""Real engines as targets. Each module says what its engine promises, and why.

`make engines` installs them.
"""
