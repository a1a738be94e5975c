---------------------- MODULE VirtualDisk_write_past_end ----------------------
\* a write that reaches past the end is carried out as far as it goes
EXTENDS MCVirtualDisk

BrokenOutOfRange(lba, count) == {}
=============================================================================
