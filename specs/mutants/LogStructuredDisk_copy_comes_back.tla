---------------- MODULE LogStructuredDisk_copy_comes_back -----------------
\* what is dropped while the cleaner moves it stays in the bank
EXTENDS MCLogStructuredDisk

BrokenUnbanked(gone) == Without(bank, gone \ DOMAIN middle)
===========================================================================
