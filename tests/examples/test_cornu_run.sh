# cornu run: what it starts, how it ends, what it starts again, and that no process is left behind.
# Most commands are short scripts; at the end trainings are disturbed, and must give the same model.
# tests/run: waits, in check
. tests/checks.sh
run=("$programs/cornu" run)

# ends STATUS MESSAGE ARGUMENT...: cornu run does, and says so once on stderr, or nothing.
ends() {
    local expected=$1 message=$2
    shift 2
    "${run[@]}" "$@" >out 2>err </dev/null
    status=$?
    [ "$status" = "$expected" ] || { echo "status $status, not $expected" >>err; return 1; }
    if [ "$message" ]; then [ "$(grep -c "^cornu run: .*$message" err)" = 1 ]; else [ ! -s err ]; fi
}

# wait_for COMMAND...: until it succeeds, at most a minute.
wait_for() {
    local i
    for ((i = 0; i < 3000; i++)); do "$@" && return; sleep 0.02; done
    return 1
}
lines_are() { [ "$(cat "$1" 2>/dev/null | wc -l)" = "$2" ]; }
state_of() { sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null; }
all_gone() { # or zombies, for their new parent to collect
    local p
    for p in $(cat pids); do [[ $(state_of "$p") == [ZX]* || ! -e /proc/$p ]] || return 1; done
}

# ---- Flags ----

check "no flags" ends 2 '-n is missing'
check "no command" ends 2 'expected a command' -n 2
check "an unknown flag" ends 2 'unknown flag --ranks' --ranks 2 true
check "a flag without its value" ends 2 'restarts needs a value' -n 2 --restarts
check "too many ranks" ends 2 '-n is "257", expected a whole number from 1 to 256' -n 257 true
check "half a rank" ends 2 '-n is "1.5"' -n 1.5 true
check "more ranks at least than at first" ends 2 'min-ranks is 3.*at most the 2' \
    -n 2 --min-ranks 3 true
check "no such command" ends 127 'cannot run /no/such: No such file' -n 3 /no/such
check "a command that is none" ends 126 'cannot run /dev/null: Permission denied' -n 3 /dev/null

# ---- What ranks are given ----

speaks() {
    "${run[@]}" -n 3 -- sh -c 'echo "$CORNU_RANK $0 $1"' 'a b' c >out 2>err &&
        printf '%s a b c\n' 0 1 2 | cmp - <(sort out) && [ ! -s err ]
}
check "arguments, and output as it is" speaks
addresses() {
    "${run[@]}" -n 3 sh -c 'echo "$CORNU_WORKERS"' >out 2>err && [ "$(sort -u out | wc -l)" = 1 ] &&
        [ "$(head -n 1 out | tr , '\n' | grep -c '^127.0.0.1:[0-9]*$')" = 3 ]
}
check "the addresses of all" addresses
input() {
    echo typed | "${run[@]}" -n 3 sh -c 'echo "$CORNU_RANK $(cat)"' >out 2>err &&
        printf '%s\n' '0 typed' '1 ' '2 ' | cmp - <(sort out)
}
check "standard input is rank 0's" input
timeout_is() { "${run[@]}" -n 1 --rank-timeout 2.5 sh -c 'echo "$CORNU_RANK_TIMEOUT"' | grep -qx 2.5; }
check "--rank-timeout" timeout_is

keys() { # one for all ranks of a start, which is nowhere in a command line
    "${run[@]}" -n 3 sh -c 'echo "$CORNU_KEY"; tr "\0" " " </proc/$$/cmdline >"args.$CORNU_RANK"
                       tr "\0" " " </proc/$PPID/cmdline >>"args.$CORNU_RANK"' >out 2>err &&
        [ "$(sort -u out | grep -cE '^[0-9a-f]{64}$')" = 1 ] && [ "$(wc -l <out)" = 3 ] &&
        ! cat args.? err | grep -qF -f <(head -n 1 out) && head -n 1 out >>all.keys
}
check "a key" keys
check "a key, again" keys
check "another for each start" eval '[ "$(sort -u all.keys | wc -l)" = 2 ]'

# ---- How it ends ----

check "all succeed" ends 0 '' -n 3 true
check "a rank's status" ends 3 'rank 1 ended with status 3$' \
    -n 3 sh -c '[ $CORNU_RANK = 1 ] && exit 3; sleep 0.3; exit 1'
check "a rank that is killed" ends 137 'rank 2 was killed by signal 9$' \
    -n 3 sh -c '[ $CORNU_RANK = 2 ] && kill -9 $$; sleep 0.3; exit 1'
check "others are ended after the grace" ends 4 'rank 1 ended with status 4$' \
    -n 3 --grace 0.1 sh -c '[ $CORNU_RANK = 1 ] && exit 4; exec sleep 1000'
whole_groups() {
    ends 4 'rank 1 ended with status 4$' -n 3 --grace 0.1 sh -c '
        [ $CORNU_RANK = 1 ] && sleep 0.3 && exit 4
        sleep 1000 & echo $$ >>pids; echo $! >>pids; wait' && lines_are pids 4 && wait_for all_gone
}
check "with what they have started" whole_groups
check "one that takes no SIGTERM is killed, and blamed" ends 137 'rank 0 did not end within 0.4 s' \
    -n 3 --grace 0.2 sh -c '[ $CORNU_RANK != 0 ] && exit 1; trap "" TERM; exec sleep 1000'
quickly() { local begin=$SECONDS; "$@" && ((SECONDS - begin < 20)); }
check "a stopped one does not last" quickly ends 137 'rank 1 was stopped, and did not answer$' \
    -n 3 --grace 15 sh -c '[ $CORNU_RANK = 1 ] && kill -STOP $$; sleep 0.3; exit 1'

# ---- Restarts ----

# A script fails as rank 1 of a group of more than $least; all note how many they are.
cat >falls.sh <<'E'
#!/bin/sh
count=$(echo "$CORNU_WORKERS" | tr , '\n' | wc -l)
echo "$count" >>counts
[ "$count" -gt "${least:-0}" ] || exit 0
[ "$CORNU_RANK" = 1 ] && { [ "$how" = 9 ] && kill -9 $$; exit "$how"; }
sleep 0.2
exit 1
E
chmod +x falls.sh
falls() { # falls COUNTS LEAST HOW ENDS...: COUNTS of each start's ranks
    local counts=$1 count
    rm -f counts
    export least=$2 how=$3
    shift 3
    ends "$@" || return 1
    counted "$counts"
}
counted() {
    local count
    for count in $1; do yes "$count" | head -n "$count"; done | sort >expected
    sort counts | cmp - expected
}
check "without restarts" falls 3 2 9 137 'signal 9$' -n 3 --restarts 0 ./falls.sh
check "with those that are left" falls "3 2" 2 9 0 \
    'rank 1 was killed by signal 9; starting again with 2 ranks (restart 1 of 5)$' \
    -n 3 --restarts 5 ./falls.sh
check "after a status, too" falls "4 3" 3 7 0 'rank 1 ended with status 7; starting again with 3' \
    -n 4 --restarts 1 ./falls.sh
rounds() {
    rm -f counts
    least=0 how=9 "${run[@]}" -n 3 --min-ranks 3 --restarts 2 ./falls.sh >out 2>err
    [ $? = 137 ] && counted "3 3 3" && [ "$(grep -c 'starting again with 3 ranks' err)" = 2 ] &&
        grep -q 'signal 9; no restarts are left$' err
}
check "--min-ranks keeps their number, up to N times" rounds
check "a wrong flag is not tried again" falls 3 2 2 2 'rank 1 ended with status 2$' \
    -n 3 --restarts 5 ./falls.sh
once() { # once TEXT FLAG...: of a value that is found wrong before the ranks have met
    "${run[@]}" -n 2 --restarts 5 "$programs/cornu" train mnist_cnn "${@:2}" >out 2>err
    [ $? = 2 ] && grep -qF -- "$1" err && ! grep -q 'starting again' err
}
check "nor a wrong value of a flag: --mesh" once 'expected AXIS=SHARDS' --mesh batch=2,model
check "of --layout" once 'expected PATTERN=AXIS' --mesh batch=2 --layout dense
check "of --remat" once 'expected larger_than=N' --remat larger_than=0
check "and flags that are for others" once 'for networks of text alone' --sampling blocks
check "nor what rank 0 has done" ends 137 'signal 9 after rank 0 was done$' \
    -n 2 --restarts 5 sh -c '[ $CORNU_RANK = 1 ] && sleep 0.2 && kill -9 $$; exit 0'

# A failure that a rank reports names it, though others end first.
reports() { # reports STATUS MESSAGE STARTED THEN: STARTED ranks in all
    rm -f counts
    "${run[@]}" -n 3 --restarts 1 bash -c '
        echo "$CORNU_RANK" >>counts
        [ $CORNU_RANK = 2 ] && echo "2 $0 rank 2: $1" >&"$CORNU_REPORT_FD" && sleep 0.2
        exit 1' "$1" "$2" >out 2>err </dev/null
    [ $? = 1 ] && grep -q "^cornu run: rank 2 ended with status 1 ($2); $4" err &&
        lines_are counts "$3"
}
check "a failure that may not come again" reports 5 'out of memory' 5 'starting again with 2'
check "one that would" reports 6 'a.png: Is a directory' 3 'not started again, as it would fail'
full_disk() { # full_disk TRAP STATUS HOW
    local how="$3; not started again, as it would fail again"
    (eval "$1"
     ulimit -f 100
     "${run[@]}" -n 3 --restarts 5 "$programs/cornu" train mnist_cnn --data synthetic --limit 400 --batch-size 80 \
         --epochs 1 --device tpu --shards 8 --threads 1 --save a.safetensors) >out 2>err </dev/null
    [ $? = "$2" ] && [ "$(grep -c '^cornu run:' err)" = 1 ] && grep -qx "cornu run: rank 0 $how" err
}
check "a full disk is not tried again" full_disk "trap '' XFSZ" 1 \
    'ended with status 1 (a.safetensors: cannot be written: File too large)'
check "nor a file above its limit" full_disk : 153 'was killed by signal 25'

# ---- Signals ----

# Ranks that note each SIGTERM and SIGHUP, and end half a second later, or never.
cat >notes.sh <<'E'
#!/bin/bash
exec 2>/dev/null
trap 'echo "TERM $CORNU_RANK" >>signals; ends=143' TERM
trap 'echo "HUP $CORNU_RANK" >>signals; ends=129' HUP
echo $$ >>pids
for ((i = 0; i < 25 || lasting; )); do sleep 0.02; [ "$ends" ] && i=$((i + 1)); done
exit $ends
E
chmod +x notes.sh
begin() { # begin ARGUMENT...: in a process group of its own, as from a terminal
    rm -f pids signals
    setsid "${run[@]}" "$@" >out 2>err </dev/null &
    supervisor=$!
    wait_for lines_are pids 3
}
passes_on() { # passes_on SIGNAL STATUS TARGET
    lasting=0 begin -n 3 --restarts 5 ./notes.sh || return 1
    kill "-$1" -- "$3$supervisor"
    wait $supervisor
    [ $? = "$2" ] && all_gone && printf "$1 %s\n" 0 1 2 | cmp - <(sort signals) &&
        grep -q "^cornu run: stopped by signal $(($2 - 128))\$" err && lines_are err 1
}
check "SIGTERM goes to all, and none starts again" passes_on TERM 143 ''
check "SIGHUP" passes_on HUP 129 ''
check "a signal to the whole process group reaches each once" passes_on TERM 143 -
kills() {
    lasting=1 begin -n 3 ./notes.sh || return 1
    kill -TERM $supervisor
    wait_for lines_are signals 3 || return 1
    kill -TERM $supervisor
    wait $supervisor
    [ $? = 137 ] && all_gone
}
check "a second one kills" kills
orphans() {
    lasting=1 begin -n 3 ./notes.sh || return 1
    kill -STOP "$(tail -n 1 pids)"
    kill -KILL $supervisor
    wait $supervisor
    wait_for all_gone
} 2>/dev/null
check "no rank outlives it" orphans
is_stopped() { [ "$(state_of "$1")" = T ]; }
goes_on() { ! is_stopped "$1"; }
pauses() { # as Ctrl-Z and fg do
    local p
    lasting=0 begin -n 3 ./notes.sh || return 1
    kill -TSTP $supervisor
    for p in $supervisor $(cat pids); do wait_for is_stopped "$p" || return 1; done
    kill -CONT $supervisor
    for p in $(cat pids); do wait_for goes_on "$p" || return 1; done
    kill -TERM $supervisor
    wait $supervisor
    [ $? = 143 ] && lines_are signals 3
}
check "it can be paused" pauses
lingers() { # SIGSTOP comes when no other rank waits any more
    ends 137 'rank 1 was stopped, and did not answer after rank 0 was done$' \
        -n 2 --rank-timeout 0.5 sh -c '[ $CORNU_RANK = 0 ] || kill -STOP $$'
}
check "a rank that is stopped at the end does not last either" lingers

# ---- Trainings ----

mnist="$programs/cornu train mnist_cnn --data synthetic --limit 1600 --batch-size 80 --epochs 2 --device tpu
       --shards 4 --threads 1 --verbose 2 --backup kept --backup-freq 1"
check "a training without it" $mnist --save whole.safetensors >out 2>err

# rank_of SUPERVISOR N: its rank N.
rank_of() {
    local stat line p
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" && [[ ${line##*) } == ?\ $1\ * ]] || continue
        p=${stat//[^0-9]/}
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "CORNU_RANK=$2" && echo "$p"
    done
}
# disturbed SIGNAL RANK ARGUMENT...: sends the signal when the first backup exists.
disturbed() {
    local signal=$1 rank=$2
    shift 2
    rm -rf kept cut.safetensors
    "${run[@]}" "$@" $mnist --save cut.safetensors >out 2>err &
    supervisor=$!
    wait_for compgen -G 'kept/backup-*' >/dev/null
    if [ "$rank" ]; then kill "-$signal" "$(rank_of $supervisor "$rank")"
    else kill "-$signal" $supervisor; fi
    wait $supervisor
    status=$?
}
same_model() { cmp whole.safetensors cut.safetensors && [ ! -e kept ]; }
survives() { # survives MESSAGE DISTURBED...
    local message=$1
    shift
    disturbed "$@"
    [ $status = 0 ] && grep -q "^cornu run: $message; starting again with 2 " err &&
        grep -q '^Resuming from' out && same_model
}
check "a rank is killed" survives 'rank 1 was killed by signal 9' KILL 1 -n 3 --restarts 1
check "rank 0 is killed" survives 'rank 0 was killed by signal 9' KILL 0 -n 3 --restarts 1
check "a rank is stopped" survives 'rank 2 was stopped, and did not answer' \
    STOP 2 -n 3 --restarts 1 --rank-timeout 1
suspends() { # for longer than ranks wait for each other, as they do
    local rank
    rm -rf kept cut.safetensors
    "${run[@]}" -n 3 --rank-timeout 1 $mnist --save cut.safetensors >out 2>err &
    supervisor=$!
    wait_for compgen -G 'kept/backup-*' >/dev/null
    rank=$(rank_of $supervisor 1)
    kill -STOP "$rank"
    sleep 0.2
    kill -TSTP $supervisor
    wait_for is_stopped $supervisor || return 1
    sleep 1.5
    kill -CONT $supervisor
    wait $supervisor && same_model
}
check "all are suspended, and go on" suspends
interrupted() {
    disturbed TERM '' -n 3 --restarts 1
    [ $status = 143 ] && [ -e kept ] && [ ! -e cut.safetensors ] || return 1
    "${run[@]}" -n 2 $mnist --save cut.safetensors >out 2>err && grep -q '^Resuming from' out &&
        same_model
}
check "all are interrupted, and go on as two" interrupted

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
