#!/usr/bin/env bash
# check.sh BUILD SYSROOT PROGRAM...: runs test programs built for arm64 under qemu-user, some fifty
# times slower than on a processor, and prints what tests/run prints. Programs that are not run are
# listed with the reason, and count as skipped.
set -u
build=$1 sysroot=$2
shift 2

# Only tests in device/, tensor/, nn/, datasets/, models/ and check/ depend on the processor.
reason() {
    case ${1#"$build"/} in
    *.sh) echo "a script, whose programs the kernel would have to start for it" ;;
    tests/device/host/machine/test_limits) echo "measures how fast the processor is" ;;
    tests/device/* | tests/tensor/* | tests/nn/* | tests/datasets/* | tests/models/* | \
        tests/check/*) ;;
    *) echo "computes nothing that the others do not" ;;
    esac
}

# Programs that take minutes start first, so that none of them runs alone at the end.
long=() short=() skipped=0
for program in "$@"; do
    why=$(reason "$program")
    if [ -z "$why" ]; then
        case ${program#"$build"/tests/} in
        nn/training/test_step* | models/* | device/host/kernels/*) long+=("$program") ;;
        *) short+=("$program") ;;
        esac
    else
        printf '%-36s skipped: %s\n' "${program#"$build"/}" "$why"
        ((skipped++))
    fi
done
chosen=("${long[@]}" "${short[@]}")
[ ${#chosen[@]} -gt 0 ] || { echo "0 passed, 0 failed, $skipped skipped"; exit 1; }

# The emulated processor has bfdot; SVE and pointer authentication would only cost time.
export CORNU_TEST_WRAPPER="qemu-aarch64 -cpu max,sve=off,pauth-impdef=on -L $sysroot"
export CORNU_TEST_TIMEOUT=${CORNU_TEST_TIMEOUT:-3600}
tests/run "$build" "${chosen[@]}" | tee "$build/check.log" | sed '$d'
read -r passed _ failed _ more _ < <(tail -n 1 "$build/check.log")
echo "$passed passed, $failed failed, $((more + skipped)) skipped"
((failed == 0))
