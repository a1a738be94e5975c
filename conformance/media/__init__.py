"""Media of the kit: block devices that it talks to, and logs of writes that make crash states."""
