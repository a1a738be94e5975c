"""Basics that every layer uses: errors, validation, checksums, the logical clock, events,
statistics.
"""
