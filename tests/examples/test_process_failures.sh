# What ranks may differ in, and how they may fail: nothing is silent. All ranks end, soon, with a
# status that is not 0, and each says which rank it is and what about it. Each case prints a line
# with its message: that of rank 0, or of rank 1 where rank 0 cannot speak.
#
# tests/run: takes 60 s, waits, in check
. tests/pictures.sh
. tests/checks.sh
small="--data synthetic --limit 400 --batch-size 40 --epochs 1 --verbose 0 --threads 1"
long="--data synthetic --limit 4000 --batch-size 40 --epochs 500 --verbose 0 --threads 1"
patience=${CORNU_TEST_PATIENCE:-15}   # seconds, of a slow machine

# Runs as each rank, with a file of its own for stderr; rank $odd has other arguments and variables.
cat >rank <<'SCRIPT'
#!/bin/bash
echo $$ >pid.$CORNU_RANK
[ "$CORNU_RANK" = "$odd" ] || other=
arguments=()
for word in $other; do
    case $word in
    --*) arguments+=("$word") ;;
    file-size=*) trap '' XFSZ; ulimit -f "${word#*=}" ;;
    *=*) export "${word?}" ;;
    *) arguments+=("$word") ;;
    esac
done
exec "$@" "${arguments[@]}" 2>err.$CORNU_RANK
SCRIPT
chmod +x rank

begin() {
    rm -f out err.? pid.?
    export odd=$1 other=$2
}

# told PATTERN RANK...: the case in `name` has ended with `status` after `took` seconds, and these
# ranks' stderr has the pattern, of grep -E.
told() {
    local pattern=$1 rank
    shift
    cat err.? >err 2>/dev/null
    printf '%-26s %4s %5.1f s  %s\n' "$name" "$status" "$took" \
        "$(cut -c1-200 "err.$1" 2>/dev/null | head -n 1)" >&3
    [ "$status" != 0 ] && [ "$status" != 124 ] || return 1
    [ "${took%.*}" -le $((patience + ${deadline:-0})) ] || return 1
    for rank in "$@"; do
        grep -Eq -- "$pattern" err.$rank || { echo "rank $rank does not say: $pattern"; return 1; }
    done
}

now() { echo "${EPOCHREALTIME/[.,]/}"; }

# differs NAME "WHAT IS DIFFERENT ON RANK 2" PATTERN COMMAND...: on three ranks.
differs() {
    name=$1
    local pattern=$3 begun
    begin 2 "$2"
    shift 3
    begun=$(now)
    timeout 100 "$programs/cornu" run -n 3 ./rank "$@" >out 2>launcher </dev/null
    status=$? took=$(awk "BEGIN { print ($(now) - $begun) / 1e6 }")
    told "$pattern" ${says:-0 1 2}
}

mnist() { # mnist NAME WHAT PATTERN ARGUMENT...
    check "$1" differs "$1" "$2" "$3" "$programs/cornu" train mnist_cnn $small "${@:4}"
}

# ---- What must be one ----

both='on rank 2 and .* on rank 0'
"$programs/cornu" train mnist_cnn $small --save a.safetensors >out 2>err
"$programs/cornu" train mnist_cnn $small --seed 5 --save b.safetensors >out 2>err

mnist "instruction set" CORNU_ISA=portable "instruction set is portable $both|status is 0"
mnist seed --seed=7 "the seed is 7 $both"
mnist shards --shards=6 "the device is cpu with 6 shards.* $both"
mnist "batch size" --batch-size=20 "the training is .* of 20 steps.* $both"
mnist epochs --epochs=3 "the training is 3 epochs.* $both"
mnist "rows" --limit=300 "the training is .* of 8 steps.* $both"
mnist "steps per epoch" --steps-per-epoch=2 "the training is .* of 2 steps.* $both"
mnist "steps per execution" --steps-per-execution=2 "the training is .* 2 at a time $both"
check model differs model "model=mnist_cnn_bn" "the (model|program) is .* $both" \
    bash -c '"$0" train "${model:-mnist_cnn}" "$@"' "$programs/cornu" $small
mnist "learning rate" --learning-rate=0.5 "the optimizer is adam with learning rate 0.5 .* $both"
mnist weights "--load=b.safetensors" "the model is .* $both" --load a.safetensors
mnist passes CORNU_PASSES=-group 'the program is .*passes "-group" '"$both"
mnist transport --transport=tcp "the transport is tcp on rank 2 and (auto|shm) on rank 0"
mnist device --device=tpu "the device is tpu:v2-8 with 3 shards.* $both" --shards 3 --policy float32
mnist precision --precision=default "the device is tpu.*precision default.* $both" --device tpu \
    --shards 3
mnist policy --policy=mixed_bfloat16 "the program is .* $both"
mnist "gradient norm" --gradient-norm "the program is .* $both"

awk 'BEGIN { print "a,b,kind"
     for (i = 0; i < 150; i++) { a = i * 37 % 101 / 50 - 1; b = i * 53 % 97 / 48 - 1
         print a "," b "," (a + b > 0.2 ? "high" : a > b ? "left" : "low") } }' >table.csv
# Rank 2 reads another file, in which a row differs: of those for training, the label; of those for
# testing; or of all, a number.
table=('"$0" "$@" "${table:-table.csv}"' "$programs/cornu" table --target kind --epochs 1 --threads 1)
sed '78s/[a-z]*$/low/; 77s/[a-z]*$/low/; 79s/[a-z]*$/low/; 80s/[a-z]*$/high/' table.csv >labels.csv
sed '2,151s/^[^,]*/0.777/' table.csv >numbers.csv
check "labels" differs labels "table=labels.csv" "the (validation )?data is .* $both" \
    bash -c "${table[@]}"
check "numbers" differs numbers "table=numbers.csv" "the (model|data) is .* $both" \
    bash -c "${table[@]}"
for row in 2 9; do
    sed "${row}s/^[^,]*/0.777/" table.csv >row.csv
    check "row $row" differs "row $row" "table=row.csv" \
        "the (model|data|validation data|data of the evaluation) is .* $both" bash -c "${table[@]}"
done

# ---- Ranks that fail by themselves ----

mnist "unreadable weights" --load=none.safetensors 'none.safetensors: cannot be read' \
    --load a.safetensors
mnist "no such data" --data=/none '/none/mnist/.* is missing'
mnist "wrong variable" CORNU_PASSES=-bogus 'CORNU_PASSES has "-bogus"'
says=2 mnist "unknown flag" --bogus 'unknown flag --bogus'
mnist "loss is nan" "" 'the loss became nan in epoch 1' --learning-rate 1e30

# Rank 0 is the one that writes.
full_disk() {
    name="disk is full"
    begin 0 file-size=100
    local begun
    begun=$(now)
    timeout 100 "$programs/cornu" run -n 3 ./rank "$programs/cornu" train mnist_cnn $small \
        --save large.safetensors >out 2>launcher </dev/null
    status=$? took=$(awk "BEGIN { print ($(now) - $begun) / 1e6 }")
    told 'large.safetensors: cannot be written: File too large' 0 1 2 && [ ! -e large.safetensors ]
}
check "disk is full" full_disk

# One of 96 pictures is cut: the rank that decodes it names it to the others.
if command -v python3 >/dev/null && draw_pictures 20 50; then
    check "picture is cut" differs "picture is cut" "" 'pictures/c/50.png' \
        "$programs/cornu" image_folder --image-size 20 --no-cache --validation-split 0 \
        --batch-size 24 --epochs 1 --verbose 0 --threads 1 pictures
else
    skip 1 "python3: make deps-test"
    echo "skipped: picture is cut: python3, which draws pictures, is not installed"
fi

# ---- Ranks that die, stop, or are asked to ----

# signalled NAME RANK SIGNAL PATTERN RANK...: of four ranks, once all train. A rank that does not
# answer is given 3 s, and the launcher waits a few for the others before it ends the stopped one.
signalled() {
    name=$1
    local rank=$2 signal=$3 pattern=$4 process begun i
    shift 4
    begin none ""
    "$programs/cornu" run -n 4 ./rank "$programs/cornu" train mnist_cnn $long --rank-timeout 3 \
        >out 2>launcher </dev/null &
    process=$!
    for ((i = 0; i < 500; i++)); do
        [ "$(grep -c . pid.0 pid.1 pid.2 pid.3 2>/dev/null | wc -l)" = 4 ] && break
        sleep 0.02
    done
    sleep 1.5
    begun=$(now)
    kill "-$signal" "$(cat "pid.$rank")"
    for ((i = 0; i < 600; i++)); do
        kill -0 $process 2>/dev/null || break
        sleep 0.1
    done
    ((i < 600)) || { kill -9 $process $(cat pid.?); }
    wait $process
    status=$? took=$(awk "BEGIN { print ($(now) - $begun) / 1e6 }")
    told "$pattern" "$@"
}
check "rank 2 is killed" signalled "rank 2 is killed" 2 KILL 'rank 2 has ended, in exchange' 0 1 3
check "rank 0 is killed" signalled "rank 0 is killed" 0 KILL 'rank 0 has ended, in exchange' 1 2 3
check "rank 1 crashes" signalled "rank 1 crashes" 1 SEGV 'rank 1 has ended, in exchange' 0 2 3
check "rank 3 stops" signalled "rank 3 stops" 3 STOP 'rank 3 has not answered for 3 s' 0 1 2
check "rank 0 stops" signalled "rank 0 stops" 0 STOP 'rank 0 has not answered for 3 s' 1 2 3
check "rank 1 is asked to stop" signalled "rank 1 is asked to stop" 1 TERM \
    'stopped after ([0-9]+ of 100 steps|epoch [0-9]+)' 0 1 2 3
same_step() { [ "$(cat err.? | grep -o 'stopped after .* of 500' | uniq | wc -l)" = 1 ]; }
check "all stop at the same step" same_step

# ---- Another library of MPI than the launcher's ----

other_mpi() { # other_mpi LAUNCHER LIBRARY
    local begun
    name="$1's mpirun, $2"
    begin none ""
    local launch=(mpirun.$1 -n 2)
    [ "$1" = mpich ] || launch=(mpirun.openmpi --oversubscribe --allow-run-as-root -n 2)
    begun=$(now)
    CORNU_MPI=$programs/libcornu_mpi_$2.so timeout 100 "${launch[@]}" "$programs/cornu" train mnist_cnn $small \
        --save none.safetensors >out 2>err.0 </dev/null
    status=$? took=$(awk "BEGIN { print ($(now) - $begun) / 1e6 }")
    told "[Ll]aunche?|started|CORNU_MPI" 0 && [ ! -e none.safetensors ]
}
for pair in openmpi:mpich mpich:openmpi; do
    if [ -e "$programs/libcornu_mpi_${pair#*:}.so" ] &&
            command -v mpirun.${pair%:*} >/dev/null; then
        check "${pair%:*}'s launcher, ${pair#*:}" other_mpi "${pair%:*}" "${pair#*:}"
    else
        skip 1 "MPI: make deps-mpi, then make"
    fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
