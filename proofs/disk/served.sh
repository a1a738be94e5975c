#!/bin/sh
# The control operations of served.toml. It runs in a folder of its own.
set -e
program=$HOOKS/../../build/proved-disk

begin() {
    rm -f log
    "$program" serve disk --socket live.sock ${SYNC---no-sync} ${PROFILE:+--profile "$PROFILE"} 2>log </dev/null >/dev/null &
    echo $! >pid
    until grep -qs serving log; do kill -0 "$(cat pid)" && sleep 0.005; done
}

end() { # the signal
    [ -e pid ] || return 0
    kill -s "$1" "$(cat pid)" 2>/dev/null || true
    # The process is gone when its last thread is: that may be the one that waits for a flush.
    while grep -qs '^State:.[^ZX]' /proc/"$(cat pid)"/task/*/status; do sleep 0.005; done
    rm -f pid
}

case $1 in
create) end TERM; rm -rf disk; "$program" create disk --blocks "$BLOCKS" --log-records 8 --segment-blocks 8 \
    ${MIRRORS:+--mirrors "$MIRRORS"} ${TREES:+--trees}; begin ;;
snapshot | delete | revert) "$program" "$1" disk -- "$NAME" ;;
restart) end TERM; begin ;;
crash) end KILL; begin ;;
stop) end TERM ;;
esac
