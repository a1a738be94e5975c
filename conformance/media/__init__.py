"""The media under an engine, owned by the kit: block devices it talks to, and logs from which it makes crash states."""
