# Trainings in several processes: for any number of ranks, over each transport, the same model,
# byte by byte, and one of everything on stdout, the same but for times. ALL=1 tries all programs
# with all numbers of ranks (make check-processes-bits).
#
# tests/run: takes 60 s, in check
. tests/pictures.sh
. tests/checks.sh
all=${ALL:-}
export TERM=dumb NO_COLOR=1   # mpirun of Open MPI gives each rank a terminal
data="--data synthetic --limit 400 --batch-size 50 --epochs 1 --verbose 2"
shards="--shards 8 --threads 1"

# What a command prints, without times and the lines on processes.
printed() {
    sed -E 's/\r$//; /^[0-9]+ process(es)?( on |; the first )/d
            s/[0-9.,]+ ?(s|ms|us|µs|ns)(\/(step|epoch))?\b/TIME/g
            s/[0-9.,]+ (samples|images|rows|characters)\/s/RATE/g' out
}

# The command that starts $1 ranks over transport $2, in `launch` and `transport`.
launcher() {
    launch=("$programs/cornu" run -n "$1")
    transport=(--transport "$2")
    case $2 in
    alone)   launch=() transport=() ;;
    openmpi) launch=(mpirun.openmpi --oversubscribe --allow-run-as-root -n "$1")
             transport=() ;;
    openmpi-*) launch=(mpirun.openmpi --oversubscribe --allow-run-as-root -n "$1"
                       --mca coll_tuned_use_dynamic_rules 1
                       --mca coll_tuned_allreduce_algorithm "${2#*-}")
               transport=() ;;
    mpich)   launch=(mpirun.mpich -n "$1") transport=() ;;
    esac
}

# alike RANKS TRANSPORT FORMAT COMMAND ARGUMENT...: as the run alone, whose results are expected.*
alike() {
    local ranks=$1 over=$2 format=$3 launch transport saved=()
    shift 3
    launcher "$ranks" "$over"
    [ "$format" = none ] || saved=(--save "model.$format")
    rm -f model.* out err
    timeout "${CORNU_TEST_TIMEOUT:-300}" "${launch[@]}" "$programs/cornu" "$@" "${saved[@]}" \
        "${transport[@]}" >out 2>err </dev/null || return 1
    printed >now.out
    if [ "$over" = alone ]; then
        rm -f expected.*
        cp now.out expected.out
        [ "$format" = none ] || cp "model.$format" "expected.$format"
        return 0
    fi
    diff expected.out now.out || return 1
    [ "$format" = none ] || cmp "expected.$format" "model.$format" || return 1
    [ "$ranks" = 1 ] || cat out err | grep -q "^$ranks processes on 1 host"
}

# bits FORMAT "RANKS:TRANSPORT..." COMMAND ARGUMENT...: alone, and so.
bits() {
    local format=$1 groups=$2 group
    shift 2
    check "${*:1:2} alone, .$format" alike 1 alone "$format" "$@"
    if [ "$all" ]; then
        groups=$(for p in 1 2 3 4 5 8; do for t in shm tcp $mpi; do echo $p:$t; done; done)
    fi
    for group in $groups; do
        check "${*:1:2}, .$format, $group" alike "${group%:*}" "${group#*:}" "$format" "$@"
    done
}

# ---- MPI: its launchers, where the plugins are built ----

mpi=
for kind in openmpi mpich; do
    if [ ! -e "$programs/libcornu_mpi_$kind.so" ]; then
        skip 1 "MPI: make deps-mpi, then make"
    elif [[ $programs == *sanitize* ]]; then
        skip 1 "sanitizer: a build without SANITIZE"
    elif ! command -v mpirun.$kind >/dev/null; then
        skip 1 "MPI: make deps-mpi, then make"
    else
        mpi="$mpi $kind"
        [ $kind != openmpi ] || mpi="$mpi openmpi-1 openmpi-4"   # neighbours' sums in other orders
    fi
done

# ---- Data of one's own ----

awk 'BEGIN { print "a,b,kind"
     for (i = 0; i < 150; i++) { a = i * 37 % 101 / 50 - 1; b = i * 53 % 97 / 48 - 1
         print a "," b "," (a + b > 0.2 ? "high" : a > b ? "left" : "low") } }' >table.csv
awk -F, '{ print $1 "," $2 }' table.csv >rows.csv

# ---- The same bits ----

short=${mpi:+$(for t in $mpi; do echo 4:$t; done)}
bits safetensors "1:shm 2:tcp 3:shm 4:tcp 5:shm 8:tcp $short" train mnist_cnn $data $shards
bits keras "3:tcp 4:shm" train mnist_cnn $data $shards --device tpu
bits safetensors "2:shm 3:tcp" train mnist_cnn_bn $data $shards
bits safetensors "4:shm" train fashion_mnist_cnn $data $shards
bits safetensors "4:shm" train shakespeare_lstm_quick --data synthetic --epochs 1 \
    --steps-per-epoch 5 --batch-size 8 --sequence-length 8 --validation-split 0 --limit 4000 \
    --verbose 2 --device tpu $shards
cp expected.safetensors text.safetensors
bits none "4:shm" generate text.safetensors --length 20 --threads 1
bits safetensors "3:shm 4:tcp" table --target kind --epochs 2 --verbose 2 table.csv --shards 9 \
    --threads 1
cp expected.safetensors table.safetensors
bits none "3:shm" table --predict --load table.safetensors rows.csv --shards 9 --threads 1
if command -v python3 >/dev/null && draw_pictures 12; then
    pictures="--image-size 20 --color-mode grayscale --epochs 2 --batch-size 16 --verbose 2"
    bits safetensors "4:shm" image_folder $pictures $shards pictures
else
    skip 1 "python3: make deps-test"
fi

# ---- Each rank opens the pictures of its own shards ----
# Of 96 that is 24, some that are prefetched for an epoch that never begins, and a row of some
# batches by which ranks find that their data are the same.

opens_its_own() { # opens_its_own [--no-cache]
    local rank count
    rm -f opened.*
    "$programs/cornu" run -n 4 bash -c '
        exec strace -f -qq -e trace=openat -o "opened.$CORNU_RANK" "$@"' strace \
        "$programs/cornu" image_folder $pictures "$@" --epochs 1 --validation-split 0 $shards \
        pictures >out 2>err </dev/null || return 1
    for rank in 0 1 2 3; do
        count=$(grep -o 'pictures/.*\.png' opened.$rank | sort -u | wc -l)
        echo "rank $rank opens $count of 96 pictures" >&3
        ((count >= 24 && count <= 40)) || return 1
    done
}
if [ ! -d pictures ] || ! strace -o /dev/null true 2>/dev/null; then
    skip 1 "strace: apt-get install strace"
elif [[ $programs == *sanitize* ]]; then
    skip 1 "sanitizer: a build without SANITIZE"
else
    check "each of four ranks opens a quarter of the pictures" opens_its_own --no-cache
    check "each of four ranks caches a quarter of the pictures" opens_its_own
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
