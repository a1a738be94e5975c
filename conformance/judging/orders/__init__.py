"""Requests that overlap: the search for an order that the contract admits."""
