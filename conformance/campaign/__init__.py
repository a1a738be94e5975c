"""Campaigns: many traces are driven, judged in batches, shrunk and put together."""
