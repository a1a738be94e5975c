"""Run the checkers of the specs, and report what they found."""
