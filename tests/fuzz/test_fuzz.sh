# Untrusted input: each target runs over its seeds and, where clang has libFuzzer, for a second
# over new inputs.
# tests/run: in check
top=$PWD
. tests/checks.sh
fuzzers=$programs/fuzz
[ -d "$fuzzers/tests/fuzz" ] || fuzzers=
targets=$(cd "$top/tests/fuzz" && ls ./*.c | sed 's|^\./||; s|\.c$||' | grep -vx replay)

for target in $targets; do
    replay() {
        TMPDIR=$folder "${fuzzers:-$programs}/tests/fuzz/$target" \
            "$top/tests/fuzz/seeds/$target"/* >out 2>err
    }
    check "$target, over what is kept" replay
done

# `make fuzz` runs all targets unless T= chooses, and fails if it chooses none. T= of `make test` is
# not meant for it.
unset MAKEFLAGS T
names_all() {
    make -n -C "$top" fuzz >out 2>err || return 1
    for target in $targets; do
        grep -q "run.sh .* tests/fuzz/$target.c" out || { echo "no $target" >>err; return 1; }
    done
}
names_one() {
    make -n -C "$top" fuzz T=fuzz/idx >out 2>err &&
        grep -Eq 'run\.sh [^ ]+ 60 +tests/fuzz/idx\.c *$' out
}
refuses_none() {
    ! bash "$top/tests/fuzz/run.sh" "$programs" 1 >out 2>err && grep -q "no such target" err
}
check "make fuzz, all targets" names_all
check "make fuzz T=fuzz/idx, that one" names_one
check "make fuzz T=nonsense, an error" refuses_none

if [ -n "$fuzzers" ]; then
    FUZZ_SEED=1 bash "$top/tests/fuzz/run.sh" "$fuzzers" 1 $targets >lines 2>err
    for target in $targets; do
        check "$target, for a second" grep -Eq "^$target [1-9][0-9]* [0-9]+ 0\$" lines
    done
else
    skip "$(wc -w <<<"$targets")" "libFuzzer: apt-get install clang libclang-rt-dev"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
