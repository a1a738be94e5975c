"""Running TLC and Apalache, and reading what they print."""
