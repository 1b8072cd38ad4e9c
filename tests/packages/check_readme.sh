# make check-packages, too: the commands of README.md and of .packaging/README.md on a bare root of
# this Debian, as they are: the first one, own_model.c, make install, the wheel, Debian packages, make
# test for one test.
# Prints how long each takes. Needs what check.sh needs; KEEP=1 keeps the root, BUILD/deb/readme.
BUILD=$1
deb=$(realpath -m "$BUILD/deb")
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
bare="$deb/readme"
mkdir -p "$deb"
. "$here/../checks.sh"
. "$here/bare.sh"

# The tree without what was built: what git has, or else all of it.
made() {
    bare_make && mkdir -p "$bare/root/cornu" || return 1
    if git -C "$root" rev-parse >out 2>&1; then
        git -C "$root" ls-files -z | (cd "$root" && xargs -0 cp --parents -t "$bare/root/cornu")
    else
        (cd "$root" && tar -c --exclude=./build . | tar -x -C "$bare/root/cornu")
    fi
}
check "debootstrap" made
[ $failed = 0 ] || { echo "$passed passed, $failed failed, $skipped skipped"; exit 1; }

# line PATTERN: the pages' commands that match, which there are; runs them in /root/cornu, and says how
# long that took. What they export holds for the next ones.
line() {
    local begin=$SECONDS commands
    commands=$(sed -n 's/^    //p' "$root/README.md" "$root"/{.packaging,nn/saving}/README.md |
        grep -E "^($1)")
    [ "$commands" ] || { echo "the pages have no command $1" >err; return 1; }
    printf '%s\n' "$commands" | grep -E '^export ' >>exported
    script "cd ${2:-/root/cornu}
$(cat exported)
$commands" || return 1
    echo "    $((SECONDS - begin)) s: $commands" >&3
}
: >exported

# ---- Before anything is installed ----

script "apt-get update -q && apt-get install -q -y make"
one_line() {
    ! script "cd /root/cornu && make" && [ "$(grep -c '^Cornu needs' err)" = 1 ] &&
        grep -q '^Cornu needs gcc .*run .make deps., which installs them$' err && ! grep -q '  cc  ' out
}
check "make says what is missing" one_line

# ---- The pages' commands ----

demo() {
    line '\(command -v make' && grep -q '^compiling, then training$' out &&
        grep -q '^\[1/[0-9]*\]  ' out && grep -q 'digits are read wrongly' out
}
check "the first command" demo
built() { script "cd /root/cornu && make" && grep -q '  ld  build/own_model' out; }
check "make" built
check "a program of one's own" line 'cc examples/own_model.c'
check "make install, pkg-config" line 'apt-get install -y pkg-config|make install PREFIX|export PKG_CONFIG'
script "mkdir -p /root/own && cp /root/cornu/examples/own_model.c /root/own"
check "outside the tree" line 'cc -std=c11 own_model.c' /root/own
check "make inference" line 'make inference|cc examples/infer.c'
check "the wheel" line 'apt-get install -y python3-venv|make wheel|~/cornu-python'
wheel() {
    script '/root/cornu-python/bin/python -c "import cornu; print(cornu.Sequential)"'
}
check "which Python imports" wheel
entries() { script "cd /root/cornu && /root/cornu-python/bin/python examples/python/from_torch.py resnet50 --entries"; }
check "from_torch.py lists what it takes" entries
check "make deb, and apt" line 'make deb$|apt install ./build/deb'
tested() { script "cd /root/cornu && make test T=test_idx" && tail -n 1 out | grep -qx '[1-9][0-9]* passed, 0 failed, 0 skipped'; }
check "make test" tested

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
