"""In-place RAID-5 and RAID-6: a block has one place for its life, and a small write reads and rewrites the parity (read-modify-write)."""
