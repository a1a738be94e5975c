"""Running the checkers of the specs, and saying what they found."""
