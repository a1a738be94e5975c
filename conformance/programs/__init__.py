"""Programs: lists of requests, how they are generated and how they are shrunk."""
