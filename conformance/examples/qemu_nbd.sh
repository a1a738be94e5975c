#!/bin/sh
# The control operations of qemu_nbd.toml. It runs in a folder of its own.
set -e

serve() { # its name, then options
    name=$1
    shift
    qemu-nbd --fork --persistent --pid-file="$name.pid" --socket="$PWD/$name.sock" "$@" \
        --image-opts driver=qcow2,discard=unmap,file.driver=file,file.filename=disk,file.locking=off
}

live() { serve live --cache=writeback --shared=4; }

end() { # its name, and the signal
    [ -e "$1.pid" ] || return 0
    pid=$(cat "$1.pid")
    kill -s "${2:-TERM}" "$pid" 2>/dev/null || true
    while grep -qs '^State:.[^ZX]' "/proc/$pid/status"; do sleep 0.01; done
    rm -f "$1.pid" "$1.sock"
}

offline() { # a command while the server is down
    end live
    status=0
    "$@" || status=$?
    live
    return $status
}

taken() { qemu-img snapshot -l disk | awk -v name="$NAME" '$2 == name { found = 1 } END { exit !found }'; }
take() { if taken; then echo taken; return 1; fi; qemu-img snapshot -c "$NAME" disk; }
existing() { taken || { echo missing; return 1; }; }
drop() { existing && qemu-img snapshot -d "$NAME" disk; }
apply() { existing && qemu-img snapshot -a "$NAME" disk; }

case $1 in
create) end live; qemu-img create -q -f qcow2 disk "$BYTES"; live ;;
snapshot) offline take ;;
delete) offline drop ;;
revert) offline apply ;;
restart) offline true ;;
crash) end live KILL; live ;;
open_view) existing; serve view --read-only --load-snapshot="snapshot.name=$NAME" ;;
close_view) end view ;;
stop) end view; end live ;;
esac
