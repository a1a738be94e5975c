"""The durable log and the checkpoint slots."""
