# Sourced from the top folder by scripts that check what programs print: an empty folder to work
# in, the programs' own, and counts of what passed.
programs=$(realpath "$BUILD")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
passed=0 failed=0 skipped=0
export LC_ALL=C.UTF-8
unset BLIS_ARCH_TYPE CORNU_DUMP CORNU_LOG
unset CORNU_RANK CORNU_WORKERS CORNU_LISTEN_FD CORNU_RANK_TIMEOUT CORNU_SCALING_FD TF_CONFIG
unset CORNU_KEY CORNU_KEY_FILE

# skip N WHAT: REMEDY: N tests cannot run here, for this reason, by which tests/run counts them.
skip() {
    echo "skipping $1: ${*:2}"
    skipped=$((skipped + $1))
}

# skip_all N WHAT: REMEDY: so for the whole script.
skip_all() {
    skip "$@"
    echo "$passed passed, $failed failed, $skipped skipped"
    exit
}

exec 3>&1   # the log, which shows what was being checked if a program hangs

check() { # check NAME COMMAND...
    local name=$1
    shift
    echo "checking: $name" >&3
    if "$@"; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "not ok: $name"
    head -n 12 out
    cat err
}
