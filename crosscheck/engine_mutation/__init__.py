"""Random bugs: mechanical mutants of the engines' source, and what finds each."""
