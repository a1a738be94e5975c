"""What every engine shares: an open disk."""
