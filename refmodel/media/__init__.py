"""Devices, the enclosure that holds them, power cuts and faults of media."""
