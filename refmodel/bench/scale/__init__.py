"""What operations cost on disks of many sizes: `refmodel bench --profile scale`."""
