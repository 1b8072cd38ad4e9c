# run.sh FOLDER SECONDS TARGET.c...: runs libFuzzer for SECONDS on each target, as many at a time as
# there are processors, starting from the inputs in seeds/TARGET/. Prints a line for each:
#
#     NAME EXECUTIONS EXECUTIONS_PER_SECOND FINDINGS
#
# Inputs that fail are added to seeds/TARGET/, so that every test tries them again; other inputs
# that reach new code go to FOLDER/corpus/. With FUZZ_SEED the same inputs are tried each time, and
# no corpus is kept. Exits with 1 if there is a finding or no target.
set -u
folder=$1 seconds=$2
shift 2
[ $# -gt 0 ] || { echo "no such target; there are: $(cd "$(dirname "$0")" && ls ./*.c |
    sed 's|^\./||; s|\.c$||' | grep -vx replay | xargs)" >&2; exit 1; }
seeds=$(dirname "$0")/seeds
export folder seconds seeds

# A dictionary of words from the seeds, which libFuzzer recombines.
words() {
    LC_ALL=C grep -aohE '"[A-Za-z0-9_.]{2,40}"|--[a-z-]+' "$seeds/$1"/* | tr -d '"' | sort -u |
        sed 's/.*/"&"/'
}

fuzz() {
    local name corpus log status dictionary=
    name=$(basename "$1" .c)
    corpus=${FUZZ_SEED:+$TMPDIR}
    corpus=${corpus:-$folder}/corpus/$name log=$folder/$name.log
    mkdir -p "$corpus" "$seeds/$name"
    words "$name" >"$folder/$name.words"
    [ -s "$folder/$name.words" ] && dictionary=-dict=$folder/$name.words
    "$folder/tests/fuzz/$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=30 \
        -max_len=8192 -print_final_stats=1 ${dictionary:+"$dictionary"} -seed="${FUZZ_SEED:-0}" \
        -artifact_prefix="$seeds/$name/" "$corpus" "$seeds/$name" >"$log" 2>&1
    status=$?
    awk -v name="$name" -v found=$((status != 0)) '
        /^stat::number_of_executed_units/ { all = $2 }
        /^stat::average_exec_per_sec/     { each = $2 }
        END { print name, all + 0, each + 0, found }' "$log"
    [ $status = 0 ] || tail -n 40 "$log" >&2
    return $status
}
export -f words fuzz

TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)") || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
printf "%s\n" "$@" | xargs -P "$(nproc)" -I{} bash -c "fuzz {} || exit 1" || exit 1
