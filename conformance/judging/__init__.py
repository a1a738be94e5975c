"""Judging: the oracles, what they say together, and why a trace is wrong."""
