"""The self-test: planted bugs and small wrong targets that the kit must find."""
