"""The engine as a target of the conformance kit."""
