"""What a campaign keeps on file: its parts so far, and failures between runs."""
