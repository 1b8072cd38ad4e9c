# make check-packages: installs the packages of BUILD/deb in a bare root of this Debian, made by
# debootstrap, as a user would, uses them there, and removes them, which leaves nothing. Needs root,
# debootstrap and a mirror; MNIST comes from CORNU_DATA. KEEP=1 keeps the root, BUILD/deb/bare.
BUILD=$1
deb=$(realpath "$BUILD/deb") || exit 1
[ "$(id -u)" = 0 ] || { echo "make check-packages must be run by root, for chroot"; exit 1; }
[ -f "${CORNU_DATA:-none}/mnist/train-images-idx3-ubyte.gz" ] ||
    [ -f "${CORNU_DATA:-none}/mnist/train-images-idx3-ubyte" ] ||
    { echo "CORNU_DATA=${CORNU_DATA:-} has no mnist/, which the programs train on"; exit 1; }
here=$(dirname "$(realpath "$0")")
bare="$deb/bare"
. "$here/../checks.sh"
. "$here/bare.sh"

# ---- The root: what debootstrap calls minimal, a model's data and an image of a digit ----

made() {
    bare_make && mkdir -p "$bare/root/debs" && cp "$deb"/*.deb "$bare/root/debs/" &&
        rm -f "$bare"/root/debs/*-dbgsym_* &&
        cp "$here"/{train.py,digit.py} "$here/../../examples/own_model.c" "$bare/root/"
}
check "debootstrap" made
[ $failed = 0 ] || { echo "$passed passed, $failed failed, $skipped skipped"; exit 1; }

# ---- Programs and Python ----

if ls "$deb"/python3-cornu_*.deb >/dev/null 2>&1; then python=python3-cornu_; else python=; fi
debs() { printf '/root/debs/%s*.deb ' "$@"; }
check "apt install" script "apt-get update -q &&
    apt-get install -q -y $(debs libcornu0_ cornu_ $python)"
check "the library is known to the run-time linker" script "ldconfig -p | grep 'libcornu.so.0 '"
trains() {
    script "cd /root &&
            cornu train mnist_cnn --epochs 1 --limit 6000 --verbose 2 --save digits.safetensors" &&
        [ -s "$bare/root/digits.safetensors" ]
}
check "cornu train" trains
predicts() {
    script "cd /root && cornu predict digits.safetensors seven.png" && grep -qw 7 out
}
if [ -n "$python" ]; then
    learns() {
        script "cd /root && python3 train.py" && tail -n 1 out |
            awk '$1 == "accuracy" { seen = 1; good = $2 >= 0.9 } END { exit !(seen && good) }'
    }
    check "ten lines of Python train MNIST" learns
else
    skip 1 "python3-cornu: nn/python/cornu"
    check "apt install python3" script "apt-get install -q -y python3-minimal"
fi
digit() { script "cd /root && python3 digit.py data/mnist seven.png"; }
check "an image of a digit" digit
check "cornu predict knows it" predicts
keras() {
    script "cd /root && cornu train mnist_cnn --epochs 1 --limit 600 --verbose 2 --save digits.keras &&
            cornu predict digits.keras seven.png"
}
check "libhdf5 is there for Keras' files" keras
ranks() {
    script "cd /root && cornu run -n 2 cornu train mnist_cnn --epochs 1 --limit 600 --verbose 2"
}
check "cornu run starts a command twice" ranks
serves() {
    script "cd /root
            cornu serve --model digits=digits.safetensors --port 0 >address &
            for i in \$(seq 100); do grep -q listening address && break; sleep 0.1; done
            kill \$!; wait \$!; grep listening address"
}
check "libmicrohttpd is there for cornu serve" serves
unserved() {
    script "dpkg -r libmicrohttpd12" && ! script "cd /root &&
        cornu serve --model digits=digits.safetensors" && grep -q 'install libmicrohttpd12$' err &&
        script "cd /root && cornu predict digits.safetensors seven.png &&
                apt-get install -q -y libmicrohttpd12"
}
check "without it cornu serve says so, and predict runs" unserved

# ---- Compiling ----

check "apt install libcornu-dev" script "apt-get install -q -y --no-install-recommends \
    $(debs libcornu-dev_) gcc libc6-dev pkg-config cmake make"
check "pkg-config, dynamic" script "cd /root && cc -std=c11 own_model.c \
    \$(pkg-config --cflags --libs cornu) -o own && ./own && [ -s rings.safetensors ]"
check "pkg-config, static" script "cd /root && cc -std=c11 own_model.c -static \
    \$(pkg-config --static --cflags --libs cornu) -o own && ./own"
with_cmake() {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.13)' 'project(own C)' \
        'find_package(Cornu REQUIRED)' 'add_executable(own own_model.c)' 'target_link_libraries(own Cornu::cornu)' \
        >"$bare/root/CMakeLists.txt"
    script "cd /root && cmake -S . -B made $1 && cmake --build made && made/own"
}
check "CMake" with_cmake
check "CMake, static" with_cmake -DCornu_USE_STATIC_LIBS=ON

# ---- MPI ----

if ls "$deb"/libcornu-mpi0_*.deb >/dev/null 2>&1; then
    mpi() { # mpi PACKAGE COMMAND
        script "apt-get install -q -y --no-install-recommends $(debs libcornu-mpi0_) $1" &&
            script "cd /root &&
                    $2 -n 2 cornu train mnist_cnn --epochs 1 --limit 600 --verbose 2 --device tpu" &&
            script "apt-get purge -q -y --autoremove $1 libcornu-mpi0"
    }
    check "mpirun of Open MPI" mpi openmpi-bin "mpirun.openmpi --allow-run-as-root --oversubscribe"
    check "mpirun of MPICH" mpi mpich mpirun.mpich
else
    skip 2 "libcornu-mpi0: make deps-mpi"
fi

# ---- Removing ----

check "apt purge" script "apt-get purge -q -y \$(dpkg-query -W -f '\${Package} ' '*cornu*')"
leaves_nothing() {
    in_root bash -c "dpkg -l; ldconfig -p
                     find / -xdev \( -path /root -o -path /proc \) -prune -o -print
                     grep -rsi cornu /etc /usr/lib/python3 /usr/share /var/lib/dpkg/status"
    [ "$(wc -l <out)" -gt 1000 ] && ! grep -i cornu out >err
}
check "which leaves nothing" leaves_nothing

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
