"""The costs of operations on disks of several sizes: `refmodel bench --profile scale`."""
