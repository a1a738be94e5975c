"""In-place RAID-5 and RAID-6: a block stays where it is, and a small write rewrites the parity."""
