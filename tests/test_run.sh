# tests/run, on toy scripts, and programs that print as cmocka does, which pass, fail, crash, hang,
# are interrupted and resumed.
# tests/run: waits, in check
root=$(pwd)
. tests/checks.sh
unset RESUME JOBS FOLDERS CORNU_TEST_TIMEOUT CORNU_DATA
mkdir -p toys/build/tests toys/tests
cd toys || exit 1

report() { check "$2" [ "$1" = 0 ]; }   # report STATUS NAME

# script NAME LINE...: a script that records that it ran and prints $result, which LINE may set.
script() {
    { echo "echo $1 >>ran; result='1 passed, 0 failed, 0 skipped'"
      printf '%s\n' "${@:2}" 'echo "$result"'; } >"tests/test_$1.sh"
}

# program NAME LINE...: a program that records that it ran, and its instruction set. In its lines
# begin, ok, bad and skip print what cmocka prints about a test.
program() {
    { echo '#!/bin/bash'
      echo 'plan() { echo "[==========] Running $1 test(s)."; }; begin() { echo "[ RUN      ] $1"; }'
      echo 'ok() { begin $1; echo "[       OK ] $1"; }; bad() { begin $1; echo "[  FAILED  ] $1"; }'
      echo 'skip() { begin $1; echo "[  BECAUSE ] $2"; echo "[  SKIPPED ] $1"; }'
      printf '%s\n' "echo $1\${CORNU_ISA:+ \$CORNU_ISA} >>ran" "${@:2}"; } >"build/tests/test_$1"
    chmod +x "build/tests/test_$1"
}

# run NAME...: runs these with tests/run. CORNU_ISA=NAME is passed on.
run() {
    local arguments=() name
    for name in "$@"; do
        case $name in
        CORNU_ISA=*) arguments+=("$name") ;;
        *) arguments+=($(ls tests/test_$name.sh build/tests/test_$name 2>/dev/null)) ;;
        esac
    done
    rm -f ran
    env -u CORNU_ISA "$root/tests/run" build "${arguments[@]}" >out 2>err
}

total() { [ "$(tail -n 1 out)" = "$1 passed, $2 failed, $3 skipped" ]; }
says() { grep -qE -- "$1" out; }
alive() { [ -e "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"; }
# ran NAME...: exactly these ran, in any order, as two run at a time.
ran() { [ "$(sort ran)" = "$(printf '%s\n' "$@" | sort)" ]; }

script good
script three 'echo "skipping 1: pjrt: make deps-pjrt"; result="2 passed, 0 failed, 1 skipped"'
script mute 'echo "skipping 2: MPI: make deps-mpi"; result="2 passed, 0 failed, 3 skipped"'
script bad 'echo why it failed; result="3 passed, 1 failed, 0 skipped"'
script broken 'exit 3'
program fine 'plan 2' 'ok one' 'ok two' 'echo "[==========] 2 test(s) run."'
program skipping 'plan 2' 'ok one' 'skip of_avx9 "pjrt: make deps-pjrt"' \
    'echo "[  SKIPPED ] 1 test(s), listed below:"; echo "[  SKIPPED ] of_avx9"'
program failing 'plan 2' 'bad one' 'ok two' \
    'echo "[  FAILED  ] 1 test(s), listed below:"; echo "[  FAILED  ] one"; exit 1'
program crashing 'plan 3' 'ok one' 'begin two' 'kill -SEGV $$'
program silent

# ---- Counts and messages ----

run good three fine skipping && total 6 0 2
report $? "all that passes passes"
says '^    skipped: of_avx9$'
report $? "what was skipped is named"
says '^skipped: pjrt 2: make deps-pjrt$'
report $? "skipped tests are counted by their reasons"
env -u CORNU_ISA RESUME=1 "$root/tests/run" build tests/test_three.sh build/tests/test_skipping >out 2>err
says '^skipped: pjrt 2: make deps-pjrt$' && says 'skipping .*\(before\)'
report $? "also of programs that ran before"
run mute && total 2 0 3 && says '^skipped: MPI 2: make deps-mpi$' && says '^skipped: no reason given 1$'
report $? "a missing reason is told"
unexplained() { # skip() of cmocka, and counts without a line before them
    ! grep -rnE '\bskip\(\);' "$root/tests" --include='*.c' >out &&
        grep -rnE -B1 'skipped=\$\(\(' "$root/tests" --include='*.sh' | awk '
              /skipped=\$\(\(/ && before !~ /skipping/ && !/skipped \+ \$1|\{skipped:-0\}/ { print; bad = 1 }
              { before = $0 } END { exit bad }' >out
}
check "each test in this tree that may be skipped says why" unexplained
run good three fine skipping
tail -n 2 out | head -n 1 | grep -qE '^slowest: .*good.sh [0-9.]+ s'
report $? "the slowest are named before the totals"
head -n 1 out | sed -E 's/.* has ([0-9]+) s.* takes ([0-9.]+) times.*/\1 \2/' |
    awk '{ exit !($2 >= 1 && $1 > 119.9 * $2 && $1 < 120.1 * $2) }'
report $? "the time limit follows the machine's pace, and both are told"
! run good bad failing && total 5 2 0
report $? "a failure fails the run"
says '^    why it failed$'
report $? "what a failed program printed follows"
! run crashing silent broken && total 1 4 0
report $? "what crashed or said nothing failed"
says 'test_crashing .*FAILED \(exit status 139, in two\)'
report $? "a crash names its test"

# ---- A line a folder ----

mkdir -p build/tests/nn/layers build/tests/nn/losses
for name in fine skipping failing; do cp build/tests/test_$name build/tests/nn/layers; done
cp build/tests/test_fine build/tests/nn/losses
of_folders() { # of_folders LINE...: without times, what is printed between the first line and the last
    FOLDERS=1 "$root/tests/run" build "${@:2}" >out 2>err
    sed '1d; $d; s/ *[0-9.]* s$//; s/  */ /g; /^slowest/d' out >lines
    diff lines - <<<"$1"
}
JOBS=1 of_folders 'tests/nn/losses 2 passed 0 failed 0 skipped
tests 1 passed 0 failed 0 skipped
tests/nn/layers 3 passed 0 failed 1 skipped
skipped: pjrt 1: make deps-pjrt' build/tests/nn/losses/test_fine tests/test_good.sh \
    build/tests/nn/layers/test_{fine,skipping} && total 6 0 1
report $? "a folder has a line, and what was skipped is said once"
JOBS=1 of_folders '' build/tests/nn/layers/test_{fine,failing} >err
grep -q '^nn/layers/test_failing .* FAILED (exit status 1)$' lines && says '^    \[  FAILED  \] one$' &&
    grep -q '^tests/nn/layers 3 passed 1 failed 0 skipped$' lines && ! grep -q '^nn/layers/test_fine' lines
report $? "a program that failed is shown in full"
JOBS=1 of_folders '' build/tests/nn/losses/test_fine CORNU_ISA=portable build/tests/nn/losses/test_fine >err
[ "$(grep -c '^tests/nn/losses 2 passed' lines)" = 2 ] && grep -qx -- '--- portable' lines && total 4 0 0
report $? "and again for each instruction set"

# ---- In parallel, and alone ----

wait_for='for i in {1..100}; do [ -e $it ] && break; sleep 0.1; done; [ -e $it ] || result="0 passed, 1 failed, 0 skipped"'
script meets "touch one; it=two; $wait_for"
script met "touch two; it=one; $wait_for"
JOBS=2 run meets met && total 2 0 0
report $? "two run at a time"
rm -f one two three
script beside '# tests/run: waits' "touch three; it=one; $wait_for"
script meets "touch one; it=two; $wait_for; it=three; $wait_for"
JOBS=2 run meets met beside && total 3 0 0
report $? "one that waits runs beside them"
script long "# tests/run: takes 90 s" "touch long"
script early 'ls long || result="0 passed, 1 failed, 0 skipped"'
JOBS=1 run early long && total 2 0 0
report $? "the long ones start first"
script late 'sleep 0.5'
JOBS=3 run late good fine
grep passed out | head -n 3 | tr '\n' ' ' | grep -q 'test_late.*test_good.*test_fine'
report $? "lines come in the order given"
for name in first second; do
    script $name '# tests/run: alone' 'mkdir lonely || result="0 passed, 1 failed, 0 skipped"' \
        'sleep 0.3; rmdir lonely; [ ! -e busy ] || result="0 passed, 1 failed, 0 skipped"'
done
script busy 'touch busy; sleep 0.5; rm busy'
JOBS=4 run first second busy late && total 4 0 0 && tail -n 2 ran | tr '\n' ' ' | grep -q 'first second'
report $? "what runs alone runs after the others, by itself"

# ---- Time limits ----

program hanging 'plan 2' 'ok one' 'begin two' 'timeout 100 sleep 100 & echo $! >pid; sleep 100'
! CORNU_TEST_TIMEOUT=3 run hanging good && says 'test_hanging .*TIMED OUT after [0-9]+ s in two$'
report $? "a hang is ended and named"
total 2 1 0
report $? "the others go on"
! alive "$(cat pid)"
report $? "nothing of it goes on"
script stuck 'echo "checking: a long one"; sleep 100'
! CORNU_TEST_TIMEOUT=3 run stuck && says 'TIMED OUT after [0-9]+ s in a long one'
report $? "a script that hangs names its check"
script stuck 'echo "checking: a long one"; trap : TERM; sleep 100' 'echo "$result"'
! CORNU_TEST_TIMEOUT=3 run stuck && says 'TIMED OUT after [0-9]+ s in a long one' && total 0 1 0
report $? "also one that goes on to its last line when what hung is ended"
script long '# tests/run: takes 90 s' 'echo "$CORNU_TEST_TIMEOUT" >half'
run long && [ "$(cat half)" -ge 180 ]
report $? "a program may say what it takes, and a script's programs have half of its limit"

# ---- Interruptions ----

script slow 'echo $$ >slow; timeout 100 sleep 100 & echo $! >>slow; wait'
for signal in TERM INT; do
    rm -f slow
    JOBS=1 env -u CORNU_ISA --default-signal=INT "$root/tests/run" build tests/test_good.sh \
        build/tests/test_fine tests/test_slow.sh tests/test_three.sh >out 2>err &
    runner=$!
    for i in {1..300}; do [ "$(grep -c . slow 2>/dev/null)" = 2 ] && break; sleep 0.1; done
    kill -$signal $runner
    wait $runner
    [ $? = 130 ] && ! alive "$(head -n 1 slow)" && ! alive "$(tail -n 1 slow)"
    report $? "SIG$signal ends a run and its children"
    says '^3 passed, 0 failed, 0 skipped' && says '^INTERRUPTED: 2 of 4 programs'
    report $? "which prints what it had, and that it is not all (SIG$signal)"
done

# ---- Resuming ----

rm ran
script slow
RESUME=1 run good fine slow three && total 6 0 1 && ran slow three
report $? "RESUME runs what did not pass, and counts all"
RESUME=1 run good fine slow three && total 6 0 1 && [ ! -e ran ]
report $? "then nothing is left to run"
touch build/tests/test_fine
RESUME=1 run good fine slow three && total 6 0 1 && grep -qx fine ran && ! grep -qx three.sh ran
report $? "what was built anew is run again"
RESUME=1 CORNU_DATA=elsewhere run good fine && ran good fine
report $? "and all with other settings"
run good fine && ran good fine
report $? "and without RESUME"
RESUME=1 run good bad
RESUME=1 run good bad
ran bad
report $? "a failure is run again"

# ---- Instruction sets ----

printf '#!/bin/sh\n[ "$CORNU_ISA $1" != "avx9 devices" ]\n' >build/cornu
chmod +x build/cornu
JOBS=1 run fine CORNU_ISA=portable fine CORNU_ISA=avx9 fine skipping CORNU_ISA= failing
total 5 1 2 && says '^this processor lacks avx9: 2 programs skipped'
report $? "what the processor lacks is skipped by name"
ran fine "fine portable" failing
report $? "each program has its CORNU_ISA"
printf '/*\n * tests/run: all instruction sets\n */\n' >tests/test_fine.c
run CORNU_ISA=portable fine CORNU_ISA= fine failing ; total 3 1 0
report $? "what tries all instruction sets runs once"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
