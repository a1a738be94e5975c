"""Copy-on-write B+trees of pages: every map of the disk is one."""
