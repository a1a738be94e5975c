"""Served disks under test: a client and a fuzzer of NBD, servers, and the soak."""
