"""Real engines as targets: each says what it promises and why. `make engines` installs them."""
