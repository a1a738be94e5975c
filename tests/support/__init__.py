"""What tests of several packages share: disks, histories, command lines, servers."""
