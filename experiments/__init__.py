"""The published experiments, reproduced: `make experiments` runs them and writes a report in which every claim is a row."""
