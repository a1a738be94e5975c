"""The counter families of each engine. docs/counters.md lists them."""
