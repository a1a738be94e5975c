"""The common parts of all command lines: how a mistake, an interrupt, and an output that cannot be
written end. All other packages may import it; it imports none of them.
"""
