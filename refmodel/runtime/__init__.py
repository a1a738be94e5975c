"""Processes: requests and background work as generators, and whose turn it is."""
