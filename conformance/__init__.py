"""The conformance kit: traces, their generation, the oracles that judge them, and the targets they come from."""
