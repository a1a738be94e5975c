--------------------- MODULE VirtualDisk_flush_forgotten ---------------------
\* a flush is answered, and pins nothing
EXTENDS MCVirtualDisk

BrokenFlush(r) == Answer(r, {}, {}, disk, survivors)
=============================================================================
