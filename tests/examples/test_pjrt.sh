#!/bin/bash
# cornu compare with a PJRT plugin for CPUs beside cpu and tpu; skipped without a plugin.
programs=$(realpath "$BUILD")
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
passed=0 failed=0
small="--data synthetic --limit 128 --batch-size 64 --epochs 1"
device=pjrt:${CORNU_TEST_PJRT:-cpu}

report() { # report STATUS NAME: shows the output of a failure
    if [ "$1" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "not ok: $2"
    cat "$out"
}

compare() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/cornu" compare mnist_cnn $small "$@" >"$out" 2>&1; }

compare --devices "$device"
status=$?
if [ $status != 0 ] && grep -q 'no PJRT plugin' "$out"; then
    printf '%s\n' "skipping 1: pjrt: make deps-pjrt" "0 passed, 0 failed, 1 skipped"
    exit 0
fi
report $status "a race of pjrt alone"

compare --devices "cpu,tpu,$device"
report $? "a race of cpu, tpu and pjrt"
for text in "^cpu  *native  *float32  *1 " "^tpu  *emulated  *mixed_bfloat16  *8 " \
            "^$device  *native  *float32  *1 " "^Modelled: "; do
    grep -q "$text" "$out"
    report $? "compare prints $text"
done
# Loss and accuracy, on the last two columns before the fallbacks: those of cpu.
[ "$(awk '$1 == "cpu" && $2 == "native" { print $(NF - 2) }' "$out")" = \
  "$(awk -v d="$device" '$1 == d && $2 == "native" { print $(NF - 2) }' "$out")" ]
report $? "pjrt has the loss of cpu"

compare --devices "$device,cpu_device_count=2"
[ $? = 1 ] && grep -q 'device "cpu_device_count=2" is unknown' "$out"
report $? "an option after a comma is refused as a device"
"$programs/cornu" compare --help >"$out"
tr -s ' \n' ' ' <"$out" | grep -q 'a pjrt device has no options here'
report $? "the help says that it has no options"

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
