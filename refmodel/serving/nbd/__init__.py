"""The server's side of the NBD protocol: bytes in, requests out; answers in, bytes out."""
