"""The conformance kit: it drives a virtual disk with generated traces, and judges the answers."""
