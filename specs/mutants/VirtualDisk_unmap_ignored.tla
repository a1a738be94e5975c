---------------------- MODULE VirtualDisk_unmap_ignored ----------------------
\* an unmap is answered, and does nothing
EXTENDS MCVirtualDisk

BrokenUnmapped(d, lba, count) == d
=============================================================================
