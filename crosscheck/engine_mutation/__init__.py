"""Bugs drawn by chance: mechanical mutants of the engines' source, and what finds each."""
