"""Targets in qemu's block layer: qcow2 and chains of images, in a storage daemon."""
