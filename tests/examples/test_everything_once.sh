# A program in several processes writes and prints one of everything, which is what it writes alone.
. tests/checks.sh
small="--device tpu --data synthetic --limit 600 --batch-size 60 --epochs 2"
files="--save m.safetensors --history h.json --trace t.json --plots figures --backup kept --tensorboard tb"

# in_ranks COUNT ARGUMENT...: each rank in a folder of its own, ranks/R; sets status, out and err.
in_ranks() {
    local count=$1
    shift
    mkdir -p ranks/0 ranks/1 ranks/2
    "$programs/cornu" run -n "$count" bash -c 'cd ranks/$CORNU_RANK && exec "$@"' rank \
        "$programs/cornu" train mnist_cnn "$@" >out 2>err
    status=$?
}

once() {
    mkdir whole
    (cd whole && "$programs/cornu" train mnist_cnn $small $files --verbose 2 >out 2>err) || return 1
    in_ranks 3 $small $files --verbose 2
    [ $status = 0 ] && [ -z "$(ls ranks/1 ranks/2 | grep -v :)" ] &&
        [ "$(ls -R ranks/0 | sed 's/tfevents.*//')" = \
          "$(cd whole && rm out err && ls -R . | sed 's/tfevents.*//; s,^\.,ranks/0,')" ] || return 1
    cmp ranks/0/m.safetensors whole/m.safetensors && cmp ranks/0/figures/filters.png whole/figures/filters.png &&
        cmp ranks/0/figures/confusion.png whole/figures/confusion.png
}
check "files are those of one process" once

one_bar() {
    [ "$(grep -c '^Epoch 2/2$' out)" = 1 ] && [ "$(grep -c '^10/10 ' out)" = 2 ] &&
        [ "$(grep -c '^Test accuracy' out)" = 1 ] && [ "$(grep -c '^Model: ' out)" = 1 ]
}
check "bars and messages are printed once" one_bar

record() {
    grep -q '"processes": 3,' ranks/0/h.json && grep -q '"processes": 1,' whole/h.json &&
        grep -q 'rank 2 of 3, measured' ranks/0/t.json
}
check "record and trace tell the processes" record

# The launcher hands the signal to all ranks, which have not done as much.
goes_on() {
    local process
    rm -rf ranks
    mkdir -p ranks/0 ranks/1 ranks/2
    "$programs/cornu" run -n 3 bash -c 'cd ranks/$CORNU_RANK && exec "$@"' rank \
        "$programs/cornu" train mnist_cnn $small --verbose 0 --backup kept --backup-freq 1 >out 2>err &
    process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'ranks/0/kept/backup-*' >/dev/null && break
        sleep 0.02
    done
    kill -TERM $process
    wait $process
    [ $? = 143 ] && grep -q 'the backup is in kept' err && [ -z "$(ls ranks/1 ranks/2 | grep -v :)" ] ||
        return 1
    in_ranks 2 $small --verbose 2 --backup kept --save m.safetensors
    [ $status = 0 ] && [ "$(grep -c '^Resuming from kept/backup-' out)" = 1 ] &&
        [ ! -e ranks/0/kept ] && [ -z "$(ls ranks/1)" ] || return 1
    "$programs/cornu" train mnist_cnn $small --verbose 0 --save alone.safetensors >out 2>err &&
        cmp alone.safetensors ranks/0/m.safetensors
}
check "three that a signal stops go on as two" goes_on

# A folder that another training uses is known to rank 0 alone.
used() {
    rm -rf ranks
    mkdir -p ranks/0/kept
    (exec 9<ranks/0/kept && flock 9 && exec sleep 60) &
    local process=$!
    sleep 0.2
    in_ranks 3 $small --verbose 0 --backup kept
    kill $process
    [ $status = 1 ] &&
        [ "$(grep -c 'rank 0: kept: used by another process' err)" = 2 ]
}
check "a folder that is in use ends all ranks" used

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
