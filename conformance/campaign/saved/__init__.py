"""The files of a campaign: its parts so far, and failures between runs."""
