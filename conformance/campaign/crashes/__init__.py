"""Exhaustive crash testing: every state that a power cut may leave of a workload."""
