# --backup DIR of cornu train: a training that was stopped by a signal, or killed, resumes when the
# same command is run again, and ends with the same bytes.
# tests/run: in check
. tests/checks.sh
small="--data synthetic --limit 600 --batch-size 50 --epochs 2 --verbose 2"

# stopped SIGNAL ARGUMENT...: starts it and sends the signal when the first backup exists;
# sets status, out and err.
stopped() {
    local number=$1 process
    shift
    "$programs/cornu" train "$@" >out 2>err &
    process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.02
    done
    kill "-$number" $process
    wait $process
    status=$?
}

# goes_on EXPECTED SIGNAL MESSAGE ARGUMENT...: stopped by the signal it prints MESSAGE; run
# again, on one thread, it ends with the model in whole.safetensors, and removes the backup.
goes_on() {
    local expected=$1 signal=$2 message=$3
    shift 3
    rm -rf kept cut.safetensors
    stopped "$signal" "$@" --backup kept --backup-freq 1 --save cut.safetensors
    [ $status = "$expected" ] && [ ! -e cut.safetensors ] || return 1
    [ -z "$message" ] || grep -q -- "$message" err || return 1
    "$programs/cornu" train "$@" --threads 1 --backup kept --save cut.safetensors >out 2>err &&
        cat out err | grep -q '^Resuming from kept/backup-' && cmp whole.safetensors cut.safetensors &&
        [ ! -e kept ]
}

check "mnist_cnn without a backup" \
    "$programs/cornu" train mnist_cnn $small --save whole.safetensors >out 2>err
cp whole.safetensors mnist.safetensors
for signal in TERM:143 INT:130 HUP:129; do
    check "mnist_cnn goes on after SIG${signal%:*}" \
        goes_on "${signal#*:}" "${signal%:*}" 'the same command goes on from there' mnist_cnn $small
done
check "mnist_cnn goes on after SIGKILL" goes_on 137 KILL '' mnist_cnn $small

text="--data synthetic --epochs 2 --steps-per-epoch 5 --batch-size 4 --sequence-length 8
      --validation-split 0 --limit 4000 --verbose 2 --device tpu --shards 2"
check "a network of text without a backup" \
    "$programs/cornu" train shakespeare_lstm_quick $text --save whole.safetensors >out 2>err
check "a network of text goes on after SIGTERM" \
    goes_on 143 TERM 'the backup is in kept' shakespeare_lstm_quick $text

# A second signal ends the program at once, within the current step, which takes seconds: with the
# signal's status, saving nothing, and leaving the terminal as it was.
at_once() { # at_once SIGNAL STATUS [OUTPUT]
    rm -rf kept
    "$programs/cornu" train mnist_cnn --device reference --data synthetic --limit 600 --batch-size 600 \
        --epochs 1 --verbose 1 --backup kept >"${3:-out}" 2>err &
    local process=$! status
    for ((i = 0; i < 3000 && $(handled $process "$1") == 0; i++)); do sleep 0.02; done
    for ((i = 0; i < 3000; i++)); do [ ! -d kept ] || break; sleep 0.02; done
    kill "-$1" $process
    for ((i = 0; i < 1000 && $(handled $process "$1") == 1; i++)); do sleep 0.02; done
    kill -0 $process || return 1        # a single signal waits for the step
    kill "-$1" $process
    wait $process
    status=$?
    [ $status = "$2" ] && [ "$(ls -A kept)" = .cornu-backups ] && [ ! -s err ]
}

# handled PROCESS NUMBER: whether the process has a handler for the signal, 1 or 0.
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
    skip 1 "script: apt-get install bsdutils"
fi

# ---- Files written after the training ----

# The folder of --save is removed while the training runs.
rm -rf kept
fails_late() {
    mkdir gone
    "$programs/cornu" train mnist_cnn $small --backup kept --backup-freq 1 --save gone/model.safetensors \
        >out 2>err &
    local process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.01
    done
    rm -rf gone
    ! wait $process && grep -q '^Epoch 2/2' out && grep -q 'gone/model.safetensors: cannot be' err &&
        compgen -G 'kept/backup-000002-*' >/dev/null
}
check "a model that cannot be saved: the backups stay" fails_late
saved_then() {
    "$programs/cornu" train mnist_cnn $small --backup kept --save cut.safetensors >out 2>err &&
        grep -q 'all 2 epochs are done' out && cmp mnist.safetensors cut.safetensors && [ ! -e kept ]
}
check "and are gone on from until it is" saved_then

# ---- Without a backup ----

# stops SIGNAL ARGUMENT...: stops a long training within an epoch; sets status, out and err.
stops() {
    rm -f out
    "$programs/cornu" train mnist_cnn --data synthetic --limit 600 --batch-size 50 --epochs 5000 --verbose 2 \
        "${@:2}" >out 2>err &
    local process=$!
    for ((i = 0; i < 3000; i++)); do grep -qs '^Epoch 3/' out && break; sleep 0.02; done
    kill "-$1" $process
    wait $process
    status=$?
}
saves() { # saves SIGNAL STATUS: the model as it is
    rm -f stopped.safetensors
    stops "$1" --save stopped.safetensors
    [ $status = "$2" ] && grep -q 'epoch [0-9]* of 5000; the model.* is saved in stopped' err &&
        "$programs/cornu" train mnist_cnn $small --epochs 1 --load stopped.safetensors >out 2>err
}
for signal in INT:130 TERM:143 HUP:129; do
    check "SIG${signal%:*} saves the model" saves "${signal%:*}" "${signal#*:}"
done
says_how() {
    stops INT
    [ $status = 130 ] && grep -q 'nothing is kept of it. --save FILE would have kept' err
}
check "without --save it says what would have kept it" says_how
ignored() {
    rm -f out
    nohup "$programs/cornu" train mnist_cnn $small --save hup.safetensors >out 2>err &
    local process=$!
    for ((i = 0; i < 3000; i++)); do grep -qs '^Epoch 1/' out && break; sleep 0.01; done
    kill -HUP $process
    wait $process && cmp mnist.safetensors hup.safetensors
}
check "SIGHUP under nohup is ignored" ignored

# A training goes on when the reader of stdout leaves.
left() {
    rm -f left.safetensors
    "$programs/cornu" train mnist_cnn $small --verbose 1 --save left.safetensors 2>err | head -n 1 >out
    [ "${PIPESTATUS[0]}" = 0 ] && [ ! -s err ] && cmp mnist.safetensors left.safetensors
}
check "a closed pipe ends no training" left

# If the backup cannot be written, because its folder is now a file, --save is tried.
rescued() {
    rm -rf kept "kept before" rescued.safetensors
    "$programs/cornu" train mnist_cnn $small --epochs 5000 --backup kept --save rescued.safetensors >out 2>err &
    local process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.01
    done
    # One rename: rm -rf fails where a backup is being written at the same time.
    mv kept "kept before" && echo >kept
    wait $process
    [ $? = 1 ] && grep -q 'the model as it stood then is saved in rescued.safetensors' err &&
        "$programs/cornu" train mnist_cnn $small --epochs 1 --load rescued.safetensors >out 2>err
}
check "a backup that fails saves the model" rescued

# ---- Other settings ----

other() { # other MESSAGE ARGUMENT...
    rm -rf kept
    stopped TERM mnist_cnn $small --backup kept
    "$programs/cornu" train mnist_cnn $small --backup kept "${@:2}" >out 2>err
    [ $? = 1 ] && grep -q -- "$1" err && compgen -G 'kept/backup-*' >/dev/null
}
check "another learning rate is refused" other 'learning_rate was 0.001 and is 0.01' \
    --learning-rate 0.01
check "another seed" other 'whose seed is 0, this one.s is 1' --seed 1
check "another device" other 'device was cpu and is tpu' --device tpu --shards 1

refuses() { # refuses MESSAGE ARGUMENT...
    ! "$programs/cornu" train mnist_cnn $small "${@:2}" >out 2>err && grep -q -- "$1" err
}
check "a folder that cannot be made" refuses '/dev/null' --backup /dev/null/x
rm -rf kept
mkdir kept && echo >kept/backup-000001-00000000.safetensors
check "a damaged backup, and no other" \
    refuses 'none of its 1 backups can be used; remove them to start again' --backup kept
check "which stays" [ -e kept/backup-000001-00000000.safetensors ]

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
