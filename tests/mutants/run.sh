#!/usr/bin/env bash
# tests/mutants/run.sh BUILD [PART]: puts the faults of faults.list into the code, one at a time,
# and runs the tests that must notice. Prints a line for each whose name or file contains PART:
#
#     NAME KILLED
#     NAME SURVIVED       and the tests that passed
#     NAME SKIPPED        and a test that this machine cannot run
#     NAME ERROR          and why it could not be tried
#
# then the numbers of errors and skipped, if any, and `N killed, N survived`. Exits with 1 if a
# fault survived or could not be tried.
#
# The tree is copied to BUILD/mutants together with its build, so that a fault costs one compile,
# one link and the tests it names. JOBS faults are tried at a time, by default one per processor,
# each in its own copy.
set -u
build=$1 part=${2-}
list=tests/mutants/faults.list
work=$(realpath -m "$build/mutants")
jobs=${JOBS:-$(nproc)}
tree_of=(Makefile .packages.mk .packaging README.md device tensor nn datasets models examples tests)
export CMOCKA_MESSAGE_OUTPUT=TAP CORNU_VERIFY=${CORNU_VERIFY:-1} LC_ALL=C.UTF-8   # as tests/run

# Splits a line at " :: " into `field`.
split() {
    local rest=$1
    field=()
    while [[ $rest == *" :: "* ]]; do
        field+=("${rest%%" :: "*}")
        rest=${rest#*" :: "}
    done
    field+=("$rest")
}

# A test is PROGRAM or PROGRAM:TEST, after any VARIABLE=VALUE to run it with. Sets `runs`, words of
# the form VARIABLE=VALUE,...,PROGRAM, and `named`, the test within each program, or "".
parse_tests() {
    local word settings=
    runs=() named=()
    for word in $1; do
        if [[ $word == *=* ]]; then settings+=$word,; continue; fi
        named+=("$([[ $word == *:* ]] && echo "${word#*:}")")
        runs+=("$settings${named[-1]:+CORNU_TEST=*${named[-1]},}${word%%:*}")
    done
}

target_of() { # target_of RUN: its target of make
    local program=${1##*,}
    [[ $program == *.sh ]] && echo built || echo "$build/tests/$program"
}

# Runs a program for at most LIMIT seconds, in the tree that is the working folder.
run() { # run RUN LIMIT LOG
    local program=${1##*,} settings=()
    IFS=, read -ra settings <<<"${1%"$program"}"
    if [[ $program == *.sh ]]; then
        env "${settings[@]}" BUILD="$build" timeout -k 10 "$2" bash "tests/$program" \
            >"$3" 2>&1 </dev/null
    else
        env "${settings[@]}" timeout -k 10 "$2" "$build/tests/$program" >"$3" 2>&1 </dev/null
    fi
}

# The result of a test by its log, where the name of an instruction set may precede it: "failed",
# "passed", "skipped" or nothing. Without a name, the result by the program's exit status.
outcome() { # outcome LOG STATUS TEST
    local name="(.*: )?${3//\?/.}"
    if [ -z "$3" ]; then
        [ "$2" = 0 ] && echo passed || echo failed
    elif grep -Eq "not ok [0-9]+ - $name\$" "$1"; then
        echo failed
    elif grep -Eq "ok [0-9]+ - $name\$" "$1"; then
        echo passed
    elif grep -Eq "ok [0-9]+ .*SKIP $name\$|ok [0-9]+ - $name # SKIP" "$1"; then
        echo skipped
    fi
}

log_of() { echo "$work/logs/$(tr '/,*' '___' <<<"$1")"; }

# Runs the program without a fault; the first line of the log is its status and milliseconds.
run_without_fault() {
    local log begin status
    log=$(log_of "$1")
    begin=${EPOCHREALTIME/[.,]/}
    (cd "$work/clean" && run "$1" 1200 "$log")
    status=$?
    echo "$status $(((${EPOCHREALTIME/[.,]/} - begin) / 1000))" >"$log.status"
}

# Replaces FROM, which must occur once, by TO; prints what is wrong otherwise.
change() { # change FILE FROM TO
    local text rest
    [ -f "$1" ] || { echo "there is no file $1"; return 1; }
    text=$(cat "$1"; echo x)
    text=${text%x}
    rest=${text#*"$2"}
    [ "$rest" != "$text" ] || { echo "\"$2\" is not in $1"; return 1; }
    [[ $rest != *"$2"* ]] || { echo "\"$2\" is in $1 more than once"; return 1; }
    printf '%s' "${text%"$2$rest"}$3$rest" >"$1"
}

# A run as it is written in the list, without its variables.
name_of() { echo "${runs[$1]##*,}${named[$1]:+:${named[$1]}}"; }

# Runs the tests of a fault in the worker's tree, and prints the verdict.
try() { # try NAME FILE FROM TO TESTS
    local why i log status milliseconds targets=() passed=() slow= said
    parse_tests "$5"
    for i in "${!runs[@]}"; do
        log=$(log_of "${runs[i]}")
        read -r status milliseconds <"$log.status"
        said=$(outcome "$log" "$status" "${named[i]}")
        if [ "$said" = skipped ]; then
            echo "SKIPPED $(name_of "$i") is skipped on this machine"
            return
        elif [ "$said" != passed ]; then
            echo "ERROR $(name_of "$i") does not pass without the fault"
            return
        fi
        targets+=("$(target_of "${runs[i]}")")
    done
    why=$(change "$2" "$3" "$4") || { echo "ERROR $why"; return; }
    if ! make --no-print-directory -s "${targets[@]}" >"$log_folder/make" 2>&1; then
        echo "ERROR does not compile: $(grep -m 1 -E 'error|Error' "$log_folder/make")"
        return
    fi
    for i in "${!runs[@]}"; do
        read -r status milliseconds <"$(log_of "${runs[i]}").status"
        run "${runs[i]}" $((60 + milliseconds / 100)) "$log_folder/test"
        status=$?
        ((status == 124 || status == 137)) && slow=" by hanging"
        [ "$(outcome "$log_folder/test" $status "${named[i]}")" = passed ] &&
            passed+=("$(name_of "$i")")
    done
    ((${#passed[@]})) && echo "SURVIVED ${passed[*]}" || echo "KILLED$slow"
}

# Restores the worker's tree, with the old times of files, so that nothing else is built again.
restore() { # restore FILE
    local object
    cp -p "$work/clean/$1" "$1" 2>/dev/null
    find "$build/obj" -type f -newer "$log_folder/begin" | while read -r object; do
        cp -p "$work/clean/$object" "$object" 2>/dev/null || rm -f "$object"
    done
    rm -rf "$build/libcornu.a" "$build/libtests.so" "$build/tests"
}

worker() { # worker NUMBER: every jobs-th line, beginning with this one
    local i verdict
    log_folder=$work/logs/$1
    mkdir -p "$log_folder" "$work/$1/tmp"
    cd "$work/$1" || exit 1
    export TMPDIR=$work/$1/tmp
    for ((i = $1; i < ${#lines[@]}; i += jobs)); do
        split "${lines[i]}"
        if ((${#field[@]} != 5)); then
            echo "${field[0]} ERROR expected NAME :: FILE :: FROM :: TO :: TESTS"
            continue
        fi
        touch "$log_folder/begin"
        verdict=$(try "${field[@]}")
        echo "${field[0]} $verdict"
        restore "${field[1]}"
    done | tee "$log_folder/results"
}

lines=() programs=()
while IFS= read -r line; do
    [[ -z $line || $line == \#* ]] && continue
    split "$line"
    [[ "${field[0]} ${field[1]-}" == *"$part"* ]] || continue
    lines+=("$line")
    parse_tests "${field[4]-}"
    programs+=("${runs[@]}")
done <"$list"
((${#lines[@]})) || { echo "no fault in $list has a name or file that contains \"$part\""; exit 1; }
((jobs > ${#lines[@]})) && jobs=${#lines[@]}
mapfile -t programs < <(printf '%s\n' "${programs[@]}" | sort -u)
mapfile -t targets < <(for p in "${programs[@]}"; do target_of "$p"; done | sort -u)

parallel=
[[ ${MAKEFLAGS-} == *jobserver* ]] || parallel=-j$(nproc)
make --no-print-directory $parallel "${targets[@]}" || exit 1
rm -rf "$work"
mkdir -p "$work/clean/$build" "$work/logs"
cp -a "${tree_of[@]}" "$work/clean"
for made in obj flags hdf5 files; do cp -a "$build/$made" "$work/clean/$build"; done
mkdir -p "$work/clean/build"
cp -a build/include build/blis.o "$work/clean/build"
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
for ((k = 0; k < jobs; k++)); do cp -a "$work/clean" "$work/$k"; done
(cd "$work/clean" && make --no-print-directory -s "${targets[@]}") || exit 1

for p in "${programs[@]}"; do run_without_fault "$p"; done
for ((k = 0; k < jobs; k++)); do worker "$k" & done
wait
count() { cat "$work"/logs/*/results | grep -c "^[^ ]* $1"; }
errors=$(count ERROR) skipped=$(count SKIPPED) survived=$(count SURVIVED)
((errors + skipped)) && echo "$errors could not be tried, $skipped skipped"
echo "$(count KILLED) killed, $survived survived"
((errors + survived == 0))
