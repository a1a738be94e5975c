"""Snapshots: the views of the disk, what each holds, and how a deleted one is reclaimed."""
