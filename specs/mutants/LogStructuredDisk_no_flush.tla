-------------------- MODULE LogStructuredDisk_no_flush --------------------
\* a checkpoint is committed before the segments it needs are flushed
EXTENDS MCLogStructuredDisk

BrokenFlushLeaves == unflushed
===========================================================================
