"""Real engines as targets: each says what it promises and why. They are installed by `make engines`."""
