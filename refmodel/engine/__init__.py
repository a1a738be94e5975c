"""The common parts of all engines: the interface of an open disk, opening, failing devices."""
