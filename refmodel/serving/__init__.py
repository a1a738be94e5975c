"""Serving a disk over NBD, and commands on a disk that is being served."""
