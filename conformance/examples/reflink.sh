#!/bin/sh
# The control operations of xfs_reflink.toml and btrfs_reflink.toml. It runs in a folder of its own, as root.
set -e
kind=$1
operation=$2

open() { mount -t "$kind" -o loop media disk.d; }
close() { umount disk.d; }

case $kind in
xfs) size=320M format="mkfs.xfs -q -f" ;;
btrfs) size=128M format="mkfs.btrfs -q -f" ;;
esac

snap=disk.d/$NAME.snap
case $operation in
create)
    if ! mountpoint -q disk.d; then
        mkdir -p disk.d
        truncate -s $size media
        $format media
        open
    fi
    rm -f disk.d/*.snap disk.d/.*.snap disk.d/disk
    truncate -s "$BYTES" disk.d/disk
    sync -f disk.d ;;
snapshot)
    [ ! -e "$snap" ] || { echo taken; exit 1; }
    cp --reflink=always disk.d/disk disk.d/new # the power may fail before it is a copy
    mv disk.d/new "$snap"
    sync -f disk.d ;;
delete)
    rm "$snap"
    sync -f disk.d ;;
revert)
    cp --reflink=always "$snap" disk.d/new
    sync disk.d/new
    mv disk.d/new disk.d/disk
    sync -f disk.d ;;
restart) close; open ;;
crash) xfs_io -x -c shutdown disk.d; close; open ;; # the file system takes no more writes and forgets what it had in memory
stop) close ;;
esac
