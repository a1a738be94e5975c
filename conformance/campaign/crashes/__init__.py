"""Every state that a power cut may leave of a workload."""
