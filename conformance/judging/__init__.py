"""Judging: the oracles, their common verdict, and explanations of failures."""
