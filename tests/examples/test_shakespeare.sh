# cornu train and cornu generate on texts, as users run them: what they print where, the text that
# is written, their errors.
program=$(realpath "$BUILD")/cornu
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/work" && cd "$folder/work" || exit 1
passed=0 failed=0
export LC_ALL=C.UTF-8
unset CORNU_ISA BLIS_ARCH_TYPE CORNU_DATA CORNU_DATA_URL XDG_CACHE_HOME

for i in $(seq 120); do echo "The quick brown fox number $((i % 7)) jumps — over it."; done > fox.txt
: > empty.txt
mkdir no-data
printf 'caf\xe9 au lait, latin-1' > latin.txt
quick="train shakespeare_lstm_quick"
small="$quick --text fox.txt --sequence-length 12 --batch-size 8 --epochs 1 --steps-per-epoch 3 --verbose 2"

report() { # report STATUS NAME
    if [ "$1" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf 'not ok: %s\n--- stdout, stderr (status %s)\n' "$2" "$status"
    tail -n 20 out err
}

run() { # sets status, out and err
    timeout "${CORNU_TEST_TIMEOUT:-300}" "$program" "$@" >out 2>err </dev/null
    status=$?
}

refuses() { # refuses STATUS MESSAGE ARGUMENT...: before anything is trained or written
    local expected=$1 message=$2
    shift 2
    run "$@"
    [ $status = "$expected" ] && grep -Eq -- "$message" err && ! grep -q Epoch out &&
        { [ "$1" = train ] || [ ! -s out ]; }
    report $? "$* exits with $expected and says \"$message\", and writes no text"
}

says() { # says PATTERN: on stdout of the last training
    grep -Eq -- "$1" out
    report $? "says \"$1\""
}

# ---- Training ----

run $small --encoding alphabet --save model.safetensors --history run.json --trace trace.json
[ $status = 0 ]
report $? "a network is trained"
says 'fox.txt: 5520 characters, vocabulary 3[0-9]'
says 'Preset quick: a smaller network'
says 'RMSprop in the form of Keras: average begins with 0, epsilon 1e-7, learning rate 0.01'
says 'Training loss: [0-9.]+ nats, [0-9.]+ bits per character'
says 'Validation loss: [0-9.]+ nats, [0-9.]+ bits per character'
! grep -q 'fell back' out
report $? "nothing is said of ops that fell back where none did"
nats=$(sed -n 's/Training loss: \(.*\) nats.*/\1/p' out) bits=$(sed -n 's/Training loss.*, \(.*\) bits.*/\1/p' out)
awk "BEGIN { exit !($nats / log(2) - $bits < 0.001 && $bits - $nats / log(2) < 0.001) }"
report $? "a nat is 1 / ln 2 bits"
[ -s model.safetensors ] && [ -s trace.json ] && grep -q '"model": *"shakespeare_lstm_quick"' run.json
report $? "model, record and trace are written"

# ---- Writing: only the text is on stdout, 40 characters and a newline ----

write="generate model.safetensors --text fox.txt --encoding alphabet"
run $write --length 40
[ $status = 0 ] && [ "$(wc -m < out)" = 41 ] && [ "$(tr -d '[:alnum:]—. \n' < out | wc -c)" = 0 ]
report $? "forty characters of the alphabet"
cp out first
run $write --length 40 --threads 1
[ $status = 0 ] && cmp -s out first
report $? "the same again, on one thread"
! grep -q Epoch err
report $? "and nothing is trained"
run $write --length 40 --seed 1
[ $status = 0 ] && ! cmp -s out first
report $? "another seed writes another text"
run generate model.safetensors --length 40 --seed 1
[ $status = 0 ] && [ "$(wc -m < out)" = 41 ] && cmp -s <($program $write --length 40 --seed 1 2>err) out
report $? "the model's file has its alphabet"
run $write --length 40 --top-p 0.001 && cp out first
run $write --length 40 --temperature 0
[ $status = 0 ] && cmp -s out first
report $? "--top-p of next to nothing is --temperature 0"
run $write --length 2000 --temperature 2 --stop ow --stop qqqqq
[ $status = 0 ] && [ "$(wc -m < out)" -lt 2000 ] && [ "$(tail -c 3 out)" = ow ] &&
    [ "$(grep -o ow out | wc -l)" = 1 ]
report $? "--stop ends the text"
run $write --length 40 --temperature 0 --seed 1 && cp out first
run $write --length 40 --top-k 1 --seed 2
[ $status = 0 ] && cmp -s out first
report $? "--top-k 1 is --temperature 0"

run $small --rmsprop tensorflow1 --sampling random --validation-split 0 --encoding bytes \
    --save bytes.safetensors
[ $status = 0 ]
report $? "random windows of bytes, TensorFlow 1's RMSprop"
says 'form of TensorFlow 1: average begins with 1, epsilon 1e-10'
! grep -q Validation out
report $? "without --validation-split nothing is held out"
run generate bytes.safetensors --encoding bytes --length 9
[ $status = 0 ] && [ "$(wc -c < out)" = 10 ]
report $? "nine bytes"
run $small --device tpu --shards 8 --save points.safetensors
[ $status = 0 ]
report $? "eight shards train"
says 'dropped 120 with code points of 255 or more'
run generate points.safetensors --length 9 --device tpu
[ $status = 0 ] && [ "$(wc -m < out)" -ge 10 ]
report $? "one writes"

run $quick --data synthetic --limit 5000 --sequence-length 12 --batch-size 8 --epochs 1 \
    --steps-per-epoch 3 --verbose 2 --history run.json
[ $status = 0 ] && grep -q '"synthetic": *true' run.json
report $? "a text drawn by code"
says 'synthetic text, drawn by code with seed 0: 5000 characters'
says 'Training loss on a synthetic text: '

# ---- Errors ----

refuses 1 'empty.txt: the text is empty' $quick --text empty.txt
refuses 1 'latin.txt: byte 3, 0xE9, is not valid UTF-8' $quick --text latin.txt
refuses 1 'file absent.txt not found' $quick --text absent.txt
refuses 1 'input.txt is neither in ./data/shakespeare|input.txt is missing' $quick --data no-data
refuses 1 '20 characters to train on are 0 blocks of 101, expected at least a batch of 32' \
    $quick --text fox.txt --limit 20 --validation-split 0
refuses 1 '20 tokens are too few for 1 sequence of 100' \
    $quick --text fox.txt --limit 20 --validation-split 0 --sampling random
refuses 1 '3780 characters to train on are 37 blocks of 101, expected at least a batch of 64; give' \
    $quick --text fox.txt --batch-size 64 --validation-split 0.3
refuses 1 '^cornu generate: --prime: character 2, "é" \(U\+00E9\), is not in the alphabet' $write --length 3 --prime 'Té'
refuses 1 '^cornu generate: --prime: character 1, "€"' generate points.safetensors --length 3 --prime €
refuses 2 'expected MODEL, got 0 arguments' generate
refuses 2 'unknown flag --save' $write --length 3 --save other.safetensors
refuses 1 'model.safetensors knows 3[0-9] characters, --encoding code-points has 25[0-9]' \
    generate model.safetensors --length 3 --encoding code-points
refuses 1 'absent.safetensors' generate absent.safetensors --length 3
refuses 1 'shakespeare_fast: no such file.*did you mean shakespeare_lstm' train shakespeare_fast
refuses 2 'rmsprop is for the LSTMs, char_gpt is' train char_gpt --rmsprop keras
refuses 2 'rmsprop is "tf", expected keras, tensorflow1' $quick --rmsprop tf
refuses 2 'temperature is "-1"' $write --temperature -1
refuses 1 '^cornu generate: --stop: character 1, "€"' $write --length 3 --stop €
refuses 2 'top-p is "0"' $write --top-p 0
refuses 2 'window is "grows", expected slides' $write --window grows
refuses 2 'top-k is "0"' $write --top-k 0

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
