"""How figures are drawn."""
