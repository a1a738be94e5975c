"""Checks that need both the specs and the conformance kit."""
