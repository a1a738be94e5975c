"""A host-side read cache in front of a disk of any engine (specs/CachedDisk.tla).

It is write-through, each disk has its own, and its content is gone with the host.
"""
