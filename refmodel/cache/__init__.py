"""A host-side read cache in front of a disk of any engine (specs/CachedDisk.tla): write-through, per disk, gone with the host."""
