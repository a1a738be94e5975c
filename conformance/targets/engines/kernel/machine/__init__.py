"""The machine that a driver runs in: a guest, the agent in it, and the lines between."""
