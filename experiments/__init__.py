"""The published experiments, reproduced: `make experiments` writes a report in which every claim is
a row.
"""
