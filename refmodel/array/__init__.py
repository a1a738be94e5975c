"""The array: layouts, legs and their components, parity, labels, membership."""
