"""Chunks of data: where they are stored, and how segments are filled, cleaned and freed."""
