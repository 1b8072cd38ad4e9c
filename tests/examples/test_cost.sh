# cornu compare: prices, energy by counters in a folder made here, targets and advice.
. tests/checks.sh
small="--data synthetic --limit 64 --batch-size 32 --epochs 1"

compare() {
    timeout "${CORNU_TEST_TIMEOUT:-300}" env CORNU_SYS_CLASS="$folder/class" \
        "$programs/cornu" compare mnist_cnn $small "$@" >out 2>err </dev/null
}

mkdir -p class/powercap/intel-rapl:0
echo package-0 >class/powercap/intel-rapl:0/name
echo 5000000 >class/powercap/intel-rapl:0/energy_uj
echo 9000000 >class/powercap/intel-rapl:0/max_energy_range_uj

# A counter that stands still: 0 J, which is not "not available".
costs() {
    compare --devices cpu,tpu:v3-8 --price cpu=3600,tpu:v3-8=8 --until 0.01 --json r.json &&
        grep -q '^Joules of an epoch and its validation, by 1 counter of the kernel' out &&
        grep -Eq '^cpu +3600 +[0-9.]+ +[0-9.]+ +0 +1 +[0-9.]+ +0$' out &&
        grep -Eq '^v3-8 +8 +[0-9.]+ +[0-9.e-]+ +[0-9]+ +1 ' out &&
        grep -q '"price_per_hour": 3600' r.json && grep -q '"joules_per_epoch": 0' r.json
}
check "prices, energy and a target" costs

absent() {
    rm -r class
    compare --devices cpu --price cpu=1 && grep -q '^Joules: not available, no counters in' out
}
check "without counters joules are not available" absent

quiet() { compare --devices cpu && ! grep -q 'Cost' out; }
check "nobody asked for costs" quiet

advice() {
    compare --devices cpu,tpu --advise &&
        grep -q '^Advice for tpu, modelled: mnist_cnn, a batch of 32' out &&
        grep -Eq '^Take [0-9]+ shards?: the fewest' out && grep -q 'The infeed is' out
}
check "how many shards to take" advice

says() { # says MESSAGE ARGUMENT...
    local message=$1
    shift
    ! compare "$@" && grep -q -- "$message" err
}
check "a price without a device" says '"7", expected DEVICE=AMOUNT_PER_HOUR' --devices cpu --price 7
check "a price of another device" says '"gpu" is not one of the devices' --devices cpu --price gpu=7
check "prices of groups of processes" says '--price and --scaling: expected only one' \
    --devices cpu --price cpu=7 --scaling 1,2

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
