-------------------- MODULE VirtualDisk_acknowledged_early --------------------
\* under ack, too, a power cut may take back what was answered
EXTENDS MCVirtualDisk

BrokenBuffered(d) == survivors \union {Exactly(d)}
=============================================================================
