#!/usr/bin/env bash
# Trainings of one or two steps under valgrind: no use of uninitialized memory, no access outside of
# allocations, no leak. Sanitizers watch all tests, but not for the first of these.
# tests/run: takes 40 s, in check
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
. tests/checks.sh

# Valgrind knows AVX2 but not AVX-512; on other processors it knows all that is used.
[ "$(uname -m)" = x86_64 ] && export CORNU_ISA=avx2
if ! valgrind -q true >out 2>err || ! valgrind -q "$programs/cornu" devices >out 2>err; then
    head -n 3 err
    skip_all 1 "valgrind: apt-get install valgrind"
    exit
fi

watched() { # watched COMMAND ARGUMENT...: its status, or 99 if valgrind finds something
    valgrind -q --error-exitcode=99 --leak-check=full "$programs/cornu" "$@" >out 2>err
}

clean() { watched "$@" --epochs 1 --threads 2; }

refuses() {
    watched "$@"
    [ $? = 1 ]
}

printf 'to be or not to be, that is the question; whether it is nobler %d\n' 1 2 3 4 5 6 >text
{ echo x,kind,y; for i in 1 2 3 4 5 6 7 8 9; do echo $i,k$((i % 2)),$((3 * i)).5; done; } >table.csv
small="--text text --batch-size 2 --sequence-length 8 --steps-per-epoch 1"

check "a CNN" clean train mnist_cnn --data synthetic --limit 4 --batch-size 2 --save cnn.keras
check "a CNN, loaded, on a tpu" \
    clean train mnist_cnn --data synthetic --limit 4 --batch-size 4 --device tpu --shards 2 --load cnn.keras
check "an image that is not there" refuses predict cnn.keras absent.png
check "an MLP" clean table table.csv --target y --batch-size 4
check "LSTMs" clean train shakespeare_lstm_quick $small --save lstm.safetensors
check "attention" clean train char_gpt $small --save gpt.safetensors
writes() { watched generate "$1" --length 4 --threads 2; }
check "text by LSTMs" writes lstm.safetensors
check "text by attention" writes gpt.safetensors

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
