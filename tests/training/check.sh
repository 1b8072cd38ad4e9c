#!/usr/bin/env bash
# tests/training/check.sh BUILD: trains the networks in full on the real digits, garments and plays,
# and compares the results with the published ones, those of a tpu device with those of cpu, and
# those of large batches with those of small ones; translates invented languages; balances poles;
# classifies pictures after three epochs; runs the examples. Takes hours, most of them for the
# plays; the data are found as by the programs (CORNU_DATA, ./data, the user's cache).
set -u
build=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0

report() { # report STATUS TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%s  %s\n' "$([ "$1" = 0 ] && echo ok || echo MISSED)" "$2"
}

# The number that a program prints after NAME is at least, or at most, WANTED; and its parameters.
ends() { # ends NAME least|most WANTED PARAMETERS PROGRAM ARGUMENT...
    local name=$1 which=$2 wanted=$3 parameters=$4 begin=$EPOCHREALTIME value found status
    shift 4
    "$build/$1" "${@:2}" >"$folder/log" 2>&1
    status=$?
    value=$(sed -n "s/^$name: \([0-9.]*\).*/\1/p" "$folder/log")
    found=$(sed -n 's/^ Total params: \([0-9,]*\).*/\1/p' "$folder/log" | tr -d ,)
    [ $status = 0 ] || tail -n 3 "$folder/log"
    [ $status = 0 ] && [ "$found" = "$parameters" ] &&
        awk -v v="${value:-none}" -v w="$wanted" -v which="$which" \
            'BEGIN { exit v == "none" || (which == "least" ? v < w : v > w) }'
    report $? "$(awk -v b="$begin" -v e="$EPOCHREALTIME" -v v="${value:-none}" -v w="$wanted" \
        -v p="${found:-?}" -v which="$which" \
        'BEGIN { printf "%s (expected at %s %s), %s parameters, %.0f s", v, which, w, p, e - b }'): $*"
}

reaches() { ends "Test accuracy" least "$@"; }   # reaches ACCURACY PARAMETERS PROGRAM ARGUMENT...

reaches 0.990 93322 cornu train mnist_cnn --epochs 10 --batch-size 128
reaches 0.988 34826 mnist_convnet
reaches 0.992 354538 cornu train mnist_cnn_bn --epochs 10 --batch-size 512
reaches 0.990 34826 cornu train mnist_convnet --epochs 15 --batch-size 128
reaches 0.915 1619470 cornu train fashion_mnist_cnn --device tpu --epochs 15 --batch-size 512

# Sentences of an invented language that were not trained on are translated exactly.
for seed in 0 1 2; do
    "$build/cornu" translate --data synthetic --seed $seed --verbose 2 >"$folder/log" 2>&1
    status=$?
    exact=$(sed -n 's/.*not trained on: \([0-9.]*\) % exact.*/\1/p' "$folder/log")
    awk -v s=$status -v e="${exact:-0}" 'BEGIN { exit s != 0 || e < 99 }'
    report $? "${exact:-no} % exact (expected at least 99): translate --data synthetic --seed $seed"
done

# The mean validation accuracies of three seeds on cpu and tpu, after five epochs, are alike.
alike() { # alike POINTS ARGUMENT...: at most so many percentage points apart
    local points=$1 seed status=0
    shift
    : >"$folder/accuracies"
    for seed in 0 1 2; do
        "$build/cornu" compare "$@" --devices cpu,tpu --epochs 5 --seed $seed \
            --json "$folder/json" >"$folder/log" 2>&1 || {
            status=1
            tail -n 3 "$folder/log"
            break
        }
        sed -n 's/^ *"device": "\(.*\)",/\1/p; s/^ *"accuracy": \(.*\),/\1/p' "$folder/json" |
            paste - - >>"$folder/accuracies"
    done
    awk -v points="$points" '{ sum[$1] += 100 * $2 / 3; count[$1]++ }
        END {
            apart = sum["tpu"] - sum["cpu"]
            printf "%.2f %% on cpu, %.2f %% on tpu, %+.2f points (expected within %s)", sum["cpu"],
                   sum["tpu"], apart, points
            exit !(count["cpu"] == 3 && count["tpu"] == 3 && apart <= points && -apart <= points)
        }' "$folder/accuracies" >"$folder/means" && [ $status = 0 ]
    report $? "$(cat "$folder/means"): three seeds of compare $*"
}

alike 0.3 mnist_cnn --batch-size 128
alike 0.3 mnist_cnn_bn --batch-size 512

# The twenty pictures, if they lie beside the digits.
reaches 0.980 93322 cornu train mnist_cnn --epochs 3 --batch-size 128 --save "$folder/m.safetensors"
"$build/tests/examples/test_predict" "$folder/m.safetensors" 19 18 >"$folder/log" 2>&1
status=$?
grep '^# ' "$folder/log" | sed 's/^# /    /'
if grep -q '^# ' "$folder/log"; then
    report $status "19 of 20 pictures as they are, 18 inverted or at three times the size"
else
    echo "skipping 1: data sets: CORNU_DATA=FOLDER with digit-images"
    skipped=$((skipped + 1))
    echo "skipped  pictures: no digit-images in CORNU_DATA"
fi

# The examples that one reads, and their like in Python, in full: the last number after TEXT is what
# examples/README.md says, with room for other processors' rounding.
. tests/python/find_python.sh
find_python numpy
example() { # example NAME least|most WANTED TEXT
    local name=$1 which=$2 wanted=$3 text=$4 top=$PWD built program begin value status
    built=$(realpath "$build")
    for program in "$built/$name" "$top/examples/python/$name.py"; do
        [ -e "$program" ] || continue
        [[ $program == *.py && -z $python ]] && continue
        mkdir "$folder/in" && begin=$EPOCHREALTIME
        (cd "$folder/in" && if [[ $program == *.py ]]; then
            PYTHONPATH=$top/nn/python CORNU_LIBRARY=$built/libcornu.so "$python" "$program"
        else
            "$program"
        fi) >"$folder/log" 2>&1
        status=$?
        value=$(sed -nE "s/.*$text:? ([0-9.]+).*/\1/p" "$folder/log" | tail -n 1)
        [ $status = 0 ] || tail -n 3 "$folder/log"
        [ $status = 0 ] && awk -v v="${value:-none}" -v w="$wanted" -v which="$which" \
            'BEGIN { exit v == "none" || (which == "least" ? v < w : v > w) }'
        report $? "$(awk -v b="$begin" -v e="$EPOCHREALTIME" 'BEGIN { printf "%.0f s", e - b }'
            ): ${program##*/}, $text ${value:-none} (expected at $which $wanted)"
        rm -rf "$folder/in"
    done
}

example mnist_cnn least 0.991 "Test accuracy"
example fashion_mnist_cnn least 0.91 "Test accuracy"
example custom_loop least 0.983 "Test accuracy"
example own_step most 130 "Loss"
example functional least 0.965 "Sums"
example transfer least 0.88 "has not seen"
example own_loss least 1.95 "y ="
example tpu_strategy least 0.983 "val_accuracy"
example colab_mnist least 0.988 "Test accuracy"
example estimator least 0.98 "Test accuracy"
example predictor least 0.97 "Test accuracy"
example image_folder least 0.95 "Validation accuracy"
example autoencoder most 0.0105 "Squared error"
example embedding least 0.87 "Test AUC"
example text_classification least 0.76 "val_accuracy"
example timeseries most 0.035 "steps ahead"
example xray least 0.95 "Validation AUC"
example spoken_digits least 0.95 "Validation accuracy"
example weather most 1.4 "hours ahead"
example shakespeare_lstm most 1.7 "Validation loss"
example char_gpt most 1.8 "Validation loss"
example cartpole most 1000 "Solved after"
"$build/compare_devices" >"$folder/log" 2>&1
grep -q '^cpu  *1 .* the same bits$' "$folder/log" &&
    awk '$1 == "cpu" || $1 == "tpu" { rows++; low += $5 < 0.975 } END { exit rows != 3 || low }' \
        "$folder/log"
report $? "compare_devices: three rows at 97.5 % at least, the same bits with one thread"

# Large batches: the mean test accuracy of five seeds is within 0.2 points of batch 128's.
mean_of_seeds() { # mean_of_seeds ARGUMENT...
    local seed
    for seed in 0 1 2 3 4; do
        "$build/cornu" train mnist_cnn --seed $seed --verbose 0 "$@" 2>&1
    done | sed -n 's/^Test accuracy: \([0-9.]*\).*/\1/p' |
        awk '{ sum += 100 * $1 } END { if (NR == 5) printf "%.3f", sum / 5; else printf "none" }'
}

small=$(mean_of_seeds --epochs 10 --batch-size 128)
for optimizer in lamb lars; do
    epochs=24
    [ $optimizer = lars ] && epochs=40   # in 24 it is 0.22 points below
    large=$(mean_of_seeds --epochs $epochs --batch-size 8192 --shards 8 --large-batch $optimizer)
    awk -v s="$small" -v l="$large" 'BEGIN { exit s == "none" || l == "none" || l < s - 0.2 }'
    report $? "$small % with batches of 128, $large % of 8,192 by $optimizer (expected within 0.2)"
done

# The pole: solved by each of five seeds.
for algorithm in ppo dqn; do
    for seed in 0 1 2 3 4; do
        "$build/cornu" cartpole --algorithm $algorithm --seed $seed --episodes 1000 >"$folder/log" 2>&1
        grep -q '^Solved' "$folder/log"
        report $? "$(tail -n 1 "$folder/log"): cartpole --algorithm $algorithm --seed $seed"
    done
done

# The plays, in nats per character.
ends "Validation loss" most 1.9 410880 cornu train shakespeare_lstm_quick
ends "Validation loss" most 1.7 875520 cornu train char_gpt --device tpu
ends "Training loss" most 1.20 4460800 cornu train shakespeare_lstm --device tpu \
    --text shakespeare/complete.txt --batch-size 1024 --steps-per-epoch 100 --epochs 10

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
