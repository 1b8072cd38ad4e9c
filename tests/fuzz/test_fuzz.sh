# Bytes that nobody vouches for: each target runs over the inputs that are kept and, where clang has
# libFuzzer, goes on for two seconds with new ones.
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

if [ -n "$fuzzers" ]; then
    FUZZ_SEED=1 bash "$top/tests/fuzz/run.sh" "$fuzzers" 2 $targets >lines 2>err
    for target in $targets; do
        check "$target, for two seconds" grep -Eq "^$target [1-9][0-9]* [0-9]+ 0\$" lines
    done
else
    echo "# skipped: what is new needs libFuzzer: apt-get install clang libclang-rt-dev"
    skipped=$(wc -w <<<"$targets")
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
