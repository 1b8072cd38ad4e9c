# An x86-64 processor without AVX trains a network: code outside the isa/ folders, BLIS included,
# may use only instructions that every such processor has. Tests of what it lacks are
# skipped there by name, not passed.
# tests/run: in check
skipped() { # skipped N WHY
    printf '%s\n' "skipping $1: $2" "0 passed, 0 failed, $1 skipped"
    exit
}
case $BUILD in
*sanitize*) skipped 2 "sanitizer: a build without SANITIZE" ;;
esac
if ! command -v qemu-x86_64 >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    skipped 2 "qemu-x86_64: apt-get install qemu-user, on x86-64"
fi
old_cpu() { env -u CORNU_ISA CMOCKA_MESSAGE_OUTPUT=TAP qemu-x86_64 -cpu Nehalem "$BUILD/$@"; }

passed=0 failed=0 skipped=0
if old_cpu cornu train mnist_cnn --data synthetic --limit 32 --epochs 1 --batch-size 32; then
    passed=1
else
    failed=1
fi
program=tests/device/host/kernels/test_precision
if [ ! -x "$BUILD/$program" ]; then
    echo "skipping 1: $program: make test builds it"
    skipped=1
else
    out=$(old_cpu $program)
    if grep -q '^ok .* portable: ' <<<"$out" && grep -q '^not ok .* # SKIP avx2: ' <<<"$out" &&
       grep -q '^not ok .* # SKIP avx512: ' <<<"$out" && ! grep '^ok .* avx' <<<"$out"; then
        passed=$((passed + 1))
    else
        echo "$out"
        failed=$((failed + 1))
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
