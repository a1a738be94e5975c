"""Looking at a disk: counters, exporters, descriptions and pictures."""
