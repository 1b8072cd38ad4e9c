# build/colab_mnist: the order of the notebook, the TPU that it reports, its errors; in three
# processes it writes the bytes of one. On few rows of bytes in place of the digits.
. tests/pictures.sh
. tests/checks.sh
unset CORNU_TPU COLAB_TPU_ADDR TPU_NAME
draw_digits data 300
export CORNU_DATA=$PWD/data

# run [VARIABLE=VALUE...]: in a new folder, made/; its status.
run() {
    rm -rf made && mkdir made &&
        (cd made && env "$@" timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/colab_mnist") >out 2>err
}

# in_order PATTERN...: out has lines that match, in this order.
in_order() {
    local line=0 found
    for pattern; do
        found=$(tail -n +$((line + 1)) out | grep -n -m 1 -- "$pattern" | cut -d: -f1)
        [ -n "$found" ] || { echo "missing, or too early: $pattern" >>err; return 1; }
        line=$((line + found))
    done
}

notebook() {
    run && in_order '^Found TPU at: local (emulated v2-8)$' '^\*\*\* Num TPU Cores: 8$' \
        '^\*\*\* Num TPU Workers: 1$' '^\*\*\* Num TPU Cores Per Worker: 8$' 'Model: "' \
        'Total params: 93,322' '^Epoch 1/' 'val_accuracy' '^Epoch 2/' \
        '^Test loss: ' '^Test accuracy: ' '^Digit [0-9]* reads ' '^[0-9]* of 300 digits are misread'
}
check "the notebook's order" notebook
check "a model and a picture are written" [ -s made/colab_mnist.keras -a -s made/misread.png ]
mv made first
again() { run && cmp first/colab_mnist.keras made/colab_mnist.keras; }
check "the same run gives the same bytes" again
together() {
    rm -rf made && mkdir made &&
        (cd made && "$programs/cornu" run -n 3 "$programs/colab_mnist") >out 2>err &&
        cmp first/colab_mnist.keras made/colab_mnist.keras && cmp first/misread.png made/misread.png
}
check "and so do three processes" together

finds() { # finds VARIABLE=VALUE PATTERN...
    run "$1" && in_order "${@:2}"
}
check "CORNU_TPU chooses the profile" finds CORNU_TPU=v4-8 \
    '^Found TPU at: local (emulated v4-8)$' '^\*\*\* Num TPU Cores: 4$'
check "an address is named" finds COLAB_TPU_ADDR=10.0.0.2:8470 \
    '^COLAB_TPU_ADDR is 10.0.0.2:8470, which is not used' '^Found TPU at: local (emulated v2-8)$'
not_claimed() { ! grep -q 'Found TPU at: .*10.0' out; }
check "not claimed" not_claimed
check "so is TPU_NAME" finds TPU_NAME=grpc://host '^TPU_NAME is grpc://host, which is not used' \
    '^Found TPU at: local'

refuses() { # refuses MESSAGE VARIABLE=VALUE: with status 1, before anything is trained
    run "$2"
    [ $? = 1 ] && grep -q -- "$1" err && ! grep -q 'Found TPU\|accuracy' out
}
check "an address that is wished for is refused, and no TPU claimed" refuses \
    'CORNU_TPU is 10.0.0.2:8470: this version has no client' CORNU_TPU=10.0.0.2:8470
check "an unknown profile" refuses 'profile "v9-8" is unknown, expected .*"v2-8".*"v6e-8"' \
    CORNU_TPU=v9-8
unwritable() {
    rm -rf made && mkdir -p made/colab_mnist.keras
    ! (cd made && "$programs/colab_mnist") >out 2>err && grep -q '^colab_mnist.keras: ' err &&
        ! grep -q '^Test accuracy' out
}
check "a model that cannot be written is an error" unwritable

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
