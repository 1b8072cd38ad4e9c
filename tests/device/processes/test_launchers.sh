# Groups that launchers start: cornu run, and the mpirun of Open MPI and of MPICH with Cornu's
# plugin, over each transport; and how they end.
# tests/run: takes 40 s, waits, in check
passed=0 failed=0 skipped=0
rank=$BUILD/tests/device/processes/test_processes
run=("$BUILD/cornu" run)
output=$BUILD/tests/device/processes/launchers.output
installed=$BUILD/tests/device/processes/installed
unset CORNU_RANK CORNU_WORKERS CORNU_LISTEN_FD CORNU_MPI
export OMPI_MCA_rmaps_base_oversubscribe=1

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "$1:"
    cat "$output"
}

# expect NAME STATUS COUNT PATTERN COMMAND...: it ends with 0, or with "failure", soon, and COUNT
# lines match, or more if it fails.
expect() {
    local name=$1 wanted=$2 count=$3 pattern=$4 status found
    shift 4
    timeout 60 "$@" >"$output" 2>&1
    status=$?
    found=$(grep -c -- "$pattern" "$output")
    if [ $status = 124 ] || { [ "$wanted" = 0 ] && [ $status != 0 ]; } ||
            { [ "$wanted" = failure ] && [ $status = 0 ]; } || [ "$found" -lt "$count" ]; then
        bad "$name: status $status, $found of $count lines with \"$pattern\""
    else
        ok
    fi
}

# ---- cornu run ----

for transport in tcp shm; do
    expect "cornu run $transport" 0 4 "of 4 processes on 1 host, over $transport" \
        "${run[@]}" -n 4 "$rank" --rank $transport well
done
expect "cornu run auto" 0 2 "of 2 processes on 1 host, over shm" \
    "${run[@]}" -n 2 "$rank" --rank auto well
expect "cornu run 1" 0 1 "rank 0 of 1 process" "${run[@]}" -n 1 "$rank" --rank auto meet
expect "cornu run failing" failure 3 "says: rank 1: cannot read the rows" \
    "${run[@]}" -n 4 "$rank" --rank auto fail
expect "cornu run killed" failure 3 "says: rank 1 has ended" "${run[@]}" -n 4 "$rank" --rank auto kill
# Rank 1 lets strangers go first, who know how ranks speak.
expect "cornu run with strangers" 0 3 "of 3 processes" "${run[@]}" -n 3 sh -c '
    [ "$CORNU_RANK" != 1 ] || "$1" --knock "${CORNU_WORKERS%%,*}" 1 3 || exit 3
    exec "$0" --rank auto well' "$rank" "$(dirname "$rank")/test_strangers"
expect "cornu run mpi" failure 2 'says: transport is "mpi", but no launcher of MPI' \
    "${run[@]}" -n 2 "$rank" --rank mpi well

# ---- MPI ----

# with LIBRARY MPIRUN NAME: all transports.
with() {
    local library=$1 mpirun=$2 name=$3 transport
    if ! command -v "${mpirun%% *}" >/dev/null || [ ! -e "$BUILD/libcornu_mpi_$library.so" ]; then
        echo "skipping 11: MPI: make deps-mpi, then make"
        skipped=$((skipped + 11))
        return
    fi
    # Found where programs are installed: in lib/cornu beside their folder.
    mkdir -p "$installed/bin" "$installed/lib/cornu"
    ln -f "$rank" "$installed/bin/rank"
    ln -f "$BUILD/libcornu_mpi_$library.so" "$installed/lib/cornu/"
    expect "$library installed" 0 2 "of 2 processes on 1 host, by $name [0-9.]* over shm" \
        $mpirun -n 2 "$installed/bin/rank" --rank auto well
    export CORNU_MPI=$BUILD/libcornu_mpi_$library.so
    for transport in mpi tcp shm; do
        expect "$library $transport" 0 4 \
            "of 4 processes on 1 host, by $name [0-9.]* over $transport" \
            $mpirun -n 4 "$rank" --rank $transport well
    done
    expect "$library auto" 0 3 "of 3 processes on 1 host, by $name [0-9.]* over shm" \
        $mpirun -n 3 "$rank" --rank auto well
    expect "$library alone" 0 1 "rank 0 of 1 process" $mpirun -n 1 "$rank" --rank auto meet
    for transport in mpi shm; do
        # The launcher ends the others as soon as one has ended, so not all are heard for certain.
        expect "$library failing $transport" failure 1 "says: .*cannot read the rows" \
            $mpirun -n 3 "$rank" --rank $transport fail
    done
    expect "$library elsewhere" failure 1 "says: rank . is in exchange 1 (.*), but rank . in" \
        $mpirun -n 3 "$rank" --rank mpi elsewhere
    expect "$library killed" failure 0 "" $mpirun -n 3 "$rank" --rank mpi kill
    CORNU_RANK_TIMEOUT=1 expect "$library stopped" failure 1 \
        "says: rank 1 has not answered for 1 s" \
        $mpirun -n 3 "$rank" --rank mpi stop
    unset CORNU_MPI
}

case $BUILD in
*sanitize*)   # libraries of MPI leak
    echo "skipping 24: sanitizer: a build without SANITIZE"
    skipped=$((skipped + 24)) ;;
*)
    with openmpi "mpirun.openmpi --allow-run-as-root --oversubscribe" "Open MPI"
    with mpich mpirun.mpich MPICH
    # A launcher without its plugin, or with another library's.
    if command -v mpirun.openmpi >/dev/null && [ -e "$BUILD/libcornu_mpi_mpich.so" ]; then
        expect "another library" failure 2 "by Open MPI's mpirun is rank 0 of 1 by MPICH" \
            env CORNU_MPI="$BUILD/libcornu_mpi_mpich.so" \
            mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 "$rank" --rank auto well
    else
        echo "skipping 1: MPI: make deps-mpi, then make"
        skipped=$((skipped + 1))
    fi
    expect "no plugin" failure 1 "rank 1 of 3, but Cornu's plugin .* make deps-mpi" \
        env PMI_SIZE=3 PMI_RANK=1 CORNU_MPI= "$rank" --rank auto well ;;
esac
if ldd "$BUILD/libcornu.so" | grep -i 'libmpi'; then bad "libcornu.so needs MPI"; else ok; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
