"""What several chapters measure, and how."""
