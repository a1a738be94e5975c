"""The lists of runs, and how a run compares with what is listed."""
