"""Hypothesis draws the same examples in every run, so that no test fails by chance."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
