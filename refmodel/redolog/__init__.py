"""The redo-log chain engine (specs/RedoLogChain.tla): a base disk, and a delta disk for each snapshot that holds what was written since."""
