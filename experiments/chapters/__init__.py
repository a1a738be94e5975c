"""The experiments, one file per published study."""
