#!/usr/bin/env bash
# tests/training/check.sh BUILD: trains on the real digits as long as it takes, and compares what
# is reached with what was published: the three networks, then pictures read after three epochs; and
# what a tpu device reaches with what cpu does. Minutes; the files are found as the programs find them (CORNU_DATA, ./data, the user's cache).
set -u
build=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0

report() { # report STATUS TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%s  %s\n' "$([ "$1" = 0 ] && echo ok || echo MISSED)" "$2"
}

reaches() { # reaches ACCURACY PARAMETERS ARGUMENT...: of mnist_cnn
    local wanted=$1 parameters=$2 begin=$EPOCHREALTIME accuracy found status
    shift 2
    "$build/mnist_cnn" "$@" >"$folder/log" 2>&1
    status=$?
    accuracy=$(sed -n 's/^Test accuracy: //p' "$folder/log")
    found=$(sed -n 's/^ Total params: \([0-9,]*\).*/\1/p' "$folder/log" | tr -d ,)
    [ $status = 0 ] || tail -n 3 "$folder/log"
    [ $status = 0 ] && [ "$found" = "$parameters" ] &&
        awk -v a="${accuracy:-0}" -v w="$wanted" 'BEGIN { exit !(a >= w) }'
    report $? "$(awk -v b="$begin" -v e="$EPOCHREALTIME" -v a="${accuracy:-none}" -v w="$wanted" \
        -v p="${found:-?}" 'BEGIN { printf "%s (expected %s), %s parameters, %.0f s", a, w, p, e - b }'): mnist_cnn $*"
}

reaches 0.990 93322 --epochs 10 --batch-size 128
reaches 0.992 354538 --model mnist_cnn_bn --epochs 10 --batch-size 512
reaches 0.990 34826 --model mnist_convnet --epochs 15 --batch-size 128

# The mean validation accuracies of three seeds after five epochs on cpu and tpu.
alike() { # alike POINTS ARGUMENT...: at most so many percentage points apart
    local points=$1 seed status=0
    shift
    : >"$folder/accuracies"
    for seed in 0 1 2; do
        "$build/compare_devices" --devices cpu,tpu --epochs 5 --seed $seed "$@" \
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
    report $? "$(cat "$folder/means"): three seeds of compare_devices $*"
}

alike 0.3 --model mnist_cnn --batch-size 128
alike 0.3 --model mnist_cnn_bn --batch-size 512

# The twenty pictures, if they are where the digits are.
reaches 0.980 93322 --epochs 3 --batch-size 128 --save "$folder/m.safetensors"
"$build/tests/examples/test_predict" "$folder/m.safetensors" 19 18 >"$folder/log" 2>&1
status=$?
grep '^# ' "$folder/log" | sed 's/^# /    /'
if grep -q '^# ' "$folder/log"; then
    report $status "19 of 20 pictures as they are, 18 inverted or at three times the size"
else
    skipped=$((skipped + 1))
    echo "skipped  pictures: no digit-images in CORNU_DATA"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
