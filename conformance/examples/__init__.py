"""Example targets: copy one and change it."""
