"""What every engine shares: the interface of an open disk, how it is opened, devices that fail."""
