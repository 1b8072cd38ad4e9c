#!/usr/bin/env bash
# tests/ahead/check.sh BUILD TOPOLOGY...: compiles all op cases and the networks' training steps for
# TPUs and GPUs that are not there. NETWORKS="mnist_cnn resnet20" in the environment chooses
# networks. A process for each topology, since a plugin may end it; its log is shown if it fails.
set -u
build=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
export ALLOW_MULTIPLE_LIBTPU_LOAD=1
failed=0
for topology; do
    begin=$SECONDS
    # shellcheck disable=SC2086 # several words
    line=$("$build/check_ahead" "$topology" ${NETWORKS-} 2>"$log")
    status=$?
    if [ $status = 77 ]; then
        printf '%s\n' "$line"
        exit 0
    fi
    printf '%s  %s (%d s)\n' "$([ $status = 0 ] && echo ok || echo FAILED)" \
        "${line:-$topology: ended with status $status}" $((SECONDS - begin))
    [ $status = 0 ] || { failed=1; tail -n 40 "$log"; }
done
exit $failed
