# --backup DIR of the examples: a training that was stopped by a signal, or killed, goes on when the
# same command is given again, and ends with the same bytes.
. tests/checks.sh
small="--data synthetic --limit 600 --batch-size 50 --epochs 2 --verbose 2"

# stopped SIGNAL PROGRAM ARGUMENT...: starts it, sends the signal when the first backup is there,
# and leaves its exit status, out and err.
stopped() {
    local number=$1 process
    shift
    "$programs/$1" "${@:2}" >out 2>err &
    process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.02
    done
    kill "-$number" $process
    wait $process
    status=$?
}

# goes_on EXPECTED SIGNAL MESSAGE PROGRAM ARGUMENT...: so stopped, it says MESSAGE; the next time,
# on one thread, it ends with the model in whole.safetensors, and keeps nothing.
goes_on() {
    local expected=$1 signal=$2 message=$3
    shift 3
    rm -rf kept cut.safetensors
    stopped "$signal" "$@" --backup kept --backup-freq 1 --save cut.safetensors
    [ $status = "$expected" ] && [ ! -e cut.safetensors ] || return 1
    [ -z "$message" ] || grep -q -- "$message" err || return 1
    "$programs/$1" "${@:2}" --threads 1 --backup kept --save cut.safetensors >out 2>err &&
        cat out err | grep -q '^Going on from kept/backup-' && cmp whole.safetensors cut.safetensors &&
        [ ! -e kept ]
}

check "mnist_cnn without a backup" \
    "$programs/mnist_cnn" $small --save whole.safetensors >out 2>err
for signal in TERM:143 INT:130; do
    check "mnist_cnn goes on after SIG${signal%:*}" \
        goes_on "${signal#*:}" "${signal%:*}" 'the same command goes on from there' mnist_cnn $small
done
check "mnist_cnn goes on after SIGKILL" goes_on 137 KILL '' mnist_cnn $small

text="--data synthetic --epochs 2 --steps-per-epoch 5 --batch-size 4 --sequence-length 8
      --validation 0 --limit 4000 --verbose 2 --device tpu --shards 2"
check "shakespeare_lstm without a backup" \
    "$programs/shakespeare_lstm" $text --save whole.safetensors >out 2>err
check "shakespeare_lstm goes on after SIGTERM" \
    goes_on 143 TERM 'what was trained is kept in kept' shakespeare_lstm $text

refuses() { # refuses MESSAGE ARGUMENT...
    ! "$programs/mnist_cnn" $small "${@:2}" >out 2>err && grep -q -- "$1" err
}
check "a folder that cannot be made" refuses '/dev/null' --backup /dev/null/x
mkdir kept && echo >kept/backup-000001-00000000.safetensors
check "a damaged backup, and no other" \
    refuses 'none of its 1 backups can be used; remove them to begin anew' --backup kept
check "which stays" [ -e kept/backup-000001-00000000.safetensors ]

echo "$passed passed, $failed failed, $skipped skipped"
