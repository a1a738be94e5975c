"""The contract: its model, the traces that record a dialogue, and the blocks that say what they
are.
"""
