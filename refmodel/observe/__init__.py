"""Observation of a disk: counters, descriptions and pictures."""
