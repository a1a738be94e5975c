"""The log-structured engine: maps, chunks, views, cleaner, checkpoints, recovery."""
