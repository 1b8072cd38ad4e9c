# build/own_op: a registered op in a layer, on each kind of device. The page on it shows this program.
. tests/checks.sh

root=$OLDPWD
shown() { sed -n '/^    /s/^    //p' "$root/tensor/README.md" | diff - <(sed '/^$/d' "$root/examples/own_op.c") >err; }
check "tensor/README.md shows examples/own_op.c" shown

own_op() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/own_op" "$@" >out 2>err </dev/null; }
placed() { grep -qE "^ *[0-9]+  my_swish  *swish  *$1$" out; }

own_op
check "on cpu by its kernel" placed 'f32 \(64, 32\)  *native  *kernel my_swish  \[[0-9]+ my_swish\]'
check "its gradient is that of the composition" grep -qE '^ *[0-9]+  sigmoid  *swish/gradient  .* native ' out
check "nothing falls back" grep -q ' 0 decomposed, 0 by reference kernels, 0 refused$' out
own_op tpu
check "on tpu on each shard, in f32" placed 'bf16 \(8, 32\)  *native  *kernel my_swish, between conversions to f32  .*'
check "and why" grep -q '^  *no kernel takes bf16 (8, 32)$' out
own_op reference
check "on reference by its reference kernel" placed 'f32 \(64, 32\)  *reference  *reference kernel my_swish  .*'
own_op pjrt:cpu
if [ $? != 0 ] && grep -q 'no PJRT plugin' err; then
    skip 1 "pjrt: make deps-pjrt"
else
    check "on XLA decomposed" placed 'f32 \(64, 32\)  *decomposed  *constant, broadcast, 2 multiply, sigmoid  .*'
fi
refused() { ! own_op nonsense && grep -q 'nonsense' err; }
check "an unknown device is refused" refused

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
