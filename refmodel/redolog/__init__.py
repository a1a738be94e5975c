"""Redo-log chains (specs/RedoLogChain.tla): a base disk, and a delta disk for each snapshot."""
