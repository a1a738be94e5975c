"""Mechanical mutants of the specs."""
