# build/colab_mnist: the order of the notebook, the TPU that it reports, its errors.
program=$(realpath "$BUILD")/colab_mnist
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
passed=0 failed=0
export LC_ALL=C
unset CORNU_TPU COLAB_TPU_ADDR TPU_NAME
small="--data synthetic --limit 300 --batch-size 64 --epochs 2"

report() { # report STATUS NAME
    if [ "$1" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "not ok: $2"
    cat out err
}

# run [VARIABLE=VALUE...] -- ARGUMENT...: sets status, out and err.
run() {
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    env "${settings[@]}" "$program" "$@" >out 2>err
    status=$?
}

# in_order PATTERN...: out has lines that match, in this order.
in_order() {
    local line=0 found
    for pattern; do
        found=$(tail -n +$((line + 1)) out | grep -n -m 1 -- "$pattern" | cut -d: -f1)
        [ -n "$found" ] || { echo "missing, or too early: $pattern"; return 1; }
        line=$((line + found))
    done
}

refuses() { # refuses STATUS MESSAGE [VARIABLE=VALUE...] -- ARGUMENT...
    local expected=$1 message=$2
    shift 2
    run "$@"
    [ $status = "$expected" ] && grep -q -- "$message" err && ! grep -q accuracy out
    report $? "$* exits with $expected and says \"$message\""
}

run -- $small --save tpu.safetensors --history h.json
[ $status = 0 ] && in_order '^Found TPU at: local (emulated v2-8)$' '^\*\*\* Num TPU Cores: 8$' \
    '^\*\*\* Num TPU Workers: 1$' '^\*\*\* Num TPU Cores Per Worker: 8$' '^synthetic digits, .*: 300 to train' \
    'Model: "mnist_cnn"' 'Total params: 93,322' '^Epoch 1/2' 'val_accuracy' '^Epoch 2/2' \
    '^Test loss: ' '^Test accuracy on synthetic digits: ' \
    '^[0-9]* of 300 digits are read wrongly' '^reads '
report $? "the notebook's order"
[ -s tpu.safetensors ] && grep -q '"device": *"tpu"' h.json && grep -q '"policy": *"mixed_bfloat16"' h.json &&
    grep -q '"shards": *8' h.json
report $? "model and record are written, and say tpu"
run -- $small --save again.safetensors --threads 1
cmp -s tpu.safetensors again.safetensors
report $? "the same run gives the same bytes, on one thread too"
# The converted model equals the one that mnist_cnn compiles for a tpu directly.
"${program%/*}/mnist_cnn" --device tpu $small --save direct.safetensors >out 2>err
cmp -s tpu.safetensors direct.safetensors
report $? "conversion and compiling for the tpu give the same weights"
fast="--policy float32 --precision default"
run -- $small $fast --save fast.safetensors
"${program%/*}/mnist_cnn" --device tpu $small $fast --save direct.safetensors >out 2>err
cmp -s fast.safetensors direct.safetensors
report $? "--precision reaches the strategy's device"

run CORNU_TPU=v4-8 -- $small
[ $status = 0 ] && in_order '^Found TPU at: local (emulated v4-8)$' '^\*\*\* Num TPU Cores: 4$'
report $? "CORNU_TPU chooses the profile"
run COLAB_TPU_ADDR=10.0.0.2:8470 -- $small
[ $status = 0 ] && in_order '^COLAB_TPU_ADDR is 10.0.0.2:8470, which is not used' \
    '^Found TPU at: local (emulated v2-8)$' && ! grep -q 'Found TPU at: .*10.0' out
report $? "an address is named, not claimed"
run TPU_NAME=grpc://host -- $small
[ $status = 0 ] && in_order '^TPU_NAME is grpc://host, which is not used' '^Found TPU at: local'
report $? "so is TPU_NAME"
refuses 1 'CORNU_TPU is 10.0.0.2:8470: this version has no client' CORNU_TPU=10.0.0.2:8470 -- $small
! grep -q 'Found TPU' out
report $? "no TPU is claimed then"
refuses 1 'profile "v9-8" is unknown, expected .*"v2-8".*"v6e-8"' CORNU_TPU=v9-8 -- $small
refuses 2 '.--shards is .1025., expected a whole number from 1 to 1024' -- $small --shards 1025
refuses 1 'a batch of 6 rows for 8 shards' -- $small --batch-size 6
refuses 2 'unknown flag --device' -- --device cpu
refuses 1 'no/m.safetensors: cannot be written' -- $small --save no/m.safetensors

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
