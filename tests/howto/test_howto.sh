# The pages that say how an op, a layer, a kernel, a device and a file format are added are true: a
# toy of each (NAME.toy) takes just the files of its page's table, builds in a copy of the tree, and
# works there.
#
# tests/run: takes 90 s, in check
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
root=$(pwd)
. tests/checks.sh
unset MAKEFLAGS MAKELEVEL
built=$programs
toys=(op kernel layer device format)

# ---- The steps of the pages ----

mkdir tree
cp -a "$root"/{Makefile,.packag*,README.md,device,tensor,nn,datasets,models,examples,tests} tree

# The files of the table on a toy's page, with the toy's names in place of NAME and its like.
files_of_page() {
    local page names name
    read -r _ _ page names <<<"$(grep '^==> page ' "$1")"
    sed -n 's/^| `\([^`]*\)` |.*/\1/p' "$root/$page" >listed
    for name in $names; do sed -i "s/${name%=*}/${name#*=}/g" listed; done
    sort -u listed
}

takes_its_files() {
    local toy=$root/tests/howto/$1.toy
    awk -v tree=tree -f "$root/tests/howto/apply.awk" "$toy" 2>err | sort -u >out
    [ ! -s err ] || return 1
    cat out >>taken
    files_of_page "$toy" >expected
    [ -s expected ] && diff expected out >err
}
for toy in "${toys[@]}"; do
    check "the toy $toy takes the files of its page, and no other" takes_its_files "$toy"
done
awk -v tree=tree -f "$root/tests/howto/apply.awk" "$root/tests/howto/check.toy" >>taken

# ---- The tree with all of them ----

# Unoptimized, as it takes a third of the time. The inline functions of BLIS' header, which nobody
# calls, then are in the way of linking.
programs='howto/test_toys device/ops/test_ops device/test_op device/plain/test_plain
          nn/layers/test_gain nn/saving/test_toy nn/saving/onnx/test_onnx'
make_it() {
    make -s -C tree -j "$(nproc)" CFLAGS='-O0 -ffunction-sections' LDFLAGS=-Wl,--gc-sections "$@" \
        >out 2>err
}
# What includes no file of a toy is compiled already; kernels of instruction sets take longest.
take_objects() {
    make_it -n build/blis.o || return 1   # writes the flags, which must be older
    sed 's,.*/,/,' taken >names
    (cd "$built" && find obj/{device,tensor,nn,datasets,models} -name '*.d' -print0 |
        xargs -0 grep -LF -f "$folder/names" >"$folder/listed"
    sed 's/d$/o/' "$folder/listed" | xargs cp --parents -t "$folder/tree/build" blis.o) 2>err
    [ "$(wc -l <listed)" -ge 50 ]
}
check "what the toys do not change is compiled already" take_objects
check "a tree with the toys builds" make_it $(printf 'build/tests/%s\n' $programs)
check "it has no circle" make_it check-circles

# passes PROGRAM [TEST]: all its tests, or those that are called so.
passes() {
    (cd tree && CORNU_TEST=${2:-*} "build/tests/$1") >out 2>err && grep -q 'PASSED  \] [1-9]' out err
}
check "softsign keeps the rules of ops" passes device/test_op
check "softsign's rows: refused, values, devices, gradient" passes device/ops/test_ops
check "softsign by finite differences on cpu and tpu" passes howto/test_toys
check "Gain learns and is saved" passes nn/layers/test_gain
check "Gain has a case for ONNX files" passes nn/saving/onnx/test_onnx '*every_class'
check "plain trains as the reference device" passes device/plain/test_plain
check "weights round trip in .toy files" passes nn/saving/test_toy

# planned DEVICE PATTERN: how many of the plan's steps there fit.
planned() {
    (cd tree && CORNU_DUMP=plan CORNU_TEST="on_$1" build/tests/howto/test_toys) 2>&1 | grep -cE "$2"
}
uses_the_kernel() { [ "$(planned "$1" '^ *[0-9]+ kernel softsign by softsign ')" -ge 1 ]; }
decomposes() {
    [ "$(planned plain softsign)" = 0 ] && [ "$(planned plain '^ *[0-9]+ group.*divide')" -ge 1 ]
}
check "the plan of cpu has the kernel" uses_the_kernel cpu
check "the plan of tpu has the kernel" uses_the_kernel tpu
check "the plan of plain has no kernel" decomposes

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
