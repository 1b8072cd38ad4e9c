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

# A second signal ends the program at once, in the step at hand, which takes longer than this waits:
# with the signal's status, nothing kept, and the terminal as it was.
at_once() { # at_once SIGNAL STATUS [OUTPUT]
    rm -rf kept
    "$programs/mnist_cnn" --device reference --data synthetic --limit 600 --batch-size 600 \
        --epochs 1 --verbose 1 --backup kept >"${3:-out}" 2>err &
    local process=$! status
    for ((i = 0; i < 1000 && $(handled $process "$1") == 0; i++)); do sleep 0.02; done
    sleep 0.5
    kill "-$1" $process
    for ((i = 0; i < 1000 && $(handled $process "$1") == 1; i++)); do sleep 0.02; done
    kill -0 $process || return 1        # one alone waits for the step
    kill "-$1" $process
    SECONDS=0
    wait $process
    status=$?
    ((SECONDS <= 3)) && [ $status = "$2" ] && rmdir kept && [ ! -s err ]
}

# handled PROCESS NUMBER: whether the process has a handler of its own for the signal, 1 or 0.
handled() {
    local mask
    mask=$(awk '/^SigCgt/ { print $2 }' "/proc/$1/status" 2>/dev/null)
    echo $((0x${mask:-0} >> ($2 - 1) & 1))
}
check "a second SIGTERM ends at once" at_once 15 143
check "a second SIGINT ends at once" at_once 2 130

in_a_terminal() {
    export -f at_once handled
    export programs
    SHELL=$BASH script -qec 'stty -g >before; at_once 15 143 /dev/tty; s=$?; stty -g >after; exit $s' \
        typed </dev/null >/dev/null && cmp before after && grep -aq $'\033' typed &&
        ! grep -aq $'\033\[?' typed    # no cursor hidden, no other screen
}
if command -v script >/dev/null; then
    check "and leaves the terminal as it was" in_a_terminal
else
    echo "no script" && skipped=$((skipped + 1))
fi

refuses() { # refuses MESSAGE ARGUMENT...
    ! "$programs/mnist_cnn" $small "${@:2}" >out 2>err && grep -q -- "$1" err
}
check "a folder that cannot be made" refuses '/dev/null' --backup /dev/null/x
mkdir kept && echo >kept/backup-000001-00000000.safetensors
check "a damaged backup, and no other" \
    refuses 'none of its 1 backups can be used; remove them to begin anew' --backup kept
check "which stays" [ -e kept/backup-000001-00000000.safetensors ]

echo "$passed passed, $failed failed, $skipped skipped"
