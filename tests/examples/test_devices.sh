#!/bin/sh
# cornu devices: what is native, emulated and modelled; its errors.
build=$BUILD
passed=0 failed=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
check() { # check NAME COMMAND...
    name=$1; shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not ok: $name"; cat "$out"; fi
}
says() { grep -q -- "$1" "$out"; }
fails() { ! "$@" > "$out" 2>&1; }
unset CORNU_TPU COLAB_TPU_ADDR TPU_NAME

"$build/cornu" devices > "$out" 2>&1
check "runs" [ $? = 0 ]
for text in '^  SIMD  ' '^  limits  .* GFLOP/s in float32, .*measured' '^  cpu  *native' '^  reference  *native' 'Found TPU at: local (emulated v2-8)' \
            'as a v2-8: 8 replicas, each 1 MXU of 128 x 128 and 8 GB of HBM; 16 MiB of VMEM a core' \
            '^  threads *[0-9]* of [0-9]* processors' '^  memory  ' 'tensors of up to 8 axes' \
            '^MXU rows (K)  .* 256 V$' '^HBM per chip  .* 32 V$' '^VMEM per core  .* 128 V$' \
            'v6e-8' 'None of them is attached' 'F fitted to a published run'; do
    check "says $text" says "$text"
done
COLAB_TPU_ADDR=10.0.0.2:8470 "$build/cornu" devices > "$out" 2>&1
check "names an address that is not used" says 'COLAB_TPU_ADDR is 10.0.0.2:8470, which is not used: '
CORNU_ISA=portable "$build/cornu" devices > "$out" 2>&1
check "heeds CORNU_ISA" says 'portable in use'
check "refuses an unknown profile" fails env CORNU_TPU=v3-9 "$build/cornu" devices
check "lists the known ones" says 'expected "v3-8", "v2-8"'
check "refuses an argument" fails "$build/cornu" devices cpu

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
