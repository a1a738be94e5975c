"""What every layer uses: errors, validation, checksums, the clock, events, histograms."""
