"""The contract: its model, the traces that record a dialogue, and self-describing blocks."""
