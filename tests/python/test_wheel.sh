# `make wheel` makes a package that pip installs in a fresh environment with NumPy alone, where the
# lines of README.md train a network on digits. Without a network NumPy is the system's; without
# pip or venv this is skipped.
# tests/run: takes 60 s, in check
. tests/python/find_python.sh
skip() { printf '%s\n' "skipping 1: $1" "0 passed, 0 failed, 1 skipped"; exit; }
case $BUILD in
*sanitize*) skip "sanitizer: a build without SANITIZE" ;;
esac
find_python "venv, ensurepip"
[ -n "$python" ] || skip "python3 with venv: make deps-test"
root=$(pwd)
. tests/checks.sh
unset PYTHONPATH CORNU_LIBRARY

make_wheel() { make -s -C "$root" BUILD="$BUILD" PYTHON="$python" wheel >out 2>err; }
check "make wheel" make_wheel
wheel=$(ls "$programs"/wheel/cornu-*-py3-none-*.whl)
cp "$wheel" first.whl
make_again() { make_wheel && cmp first.whl "$wheel"; }
check "equal files make equal wheels" make_again

# The oldest glibc that it names is this one or later than any symbol it needs.
tag_is_honest() {
    local named needed
    named=$(sed -E 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/' <<<"$wheel")
    needed=$(objdump -T "$programs/wheel/libcornu.so" | grep -o 'GLIBC_[0-9.]*' | sed 's/.*_//' |
             sort -V | tail -n 1)
    printf '%s\n%s\n' "$needed" "$named" >out
    sort -V -C out && [ -n "$needed" ]
}
check "its name tells the glibc that it needs" tag_is_honest

licensed() {
    "$python" -m zipfile -e "$wheel" unpacked && cmp unpacked/*/licenses/LICENSE "$root/LICENSE" &&
        cmp unpacked/*/licenses/copyright "$root/.packaging/debian/copyright" &&
        grep -qx 'License-Expression: Apache-2.0 AND BSD-3-Clause AND MIT' unpacked/*/METADATA
}
check "it has its license, and those of what it contains" licensed

install() {
    "$python" -m venv env >out 2>err || return 1
    env/bin/pip install -q --disable-pip-version-check "$wheel" >out 2>err && return
    "$python" -m venv --clear --system-site-packages env >out 2>err &&
        env/bin/pip install -q --disable-pip-version-check --no-index "$wheel" >out 2>err
}
if ! install; then
    if "$python" -c 'import numpy' 2>/dev/null; then
        cat out err
        echo "$passed passed, $((failed + 1)) failed, 0 skipped"
        exit 1
    fi
    skipped=0
    skip_all 1 "numpy or a network: make deps-test"
fi

sed -n '/^    import cornu$/,/^$/{s/^    //;p}' "$root/README.md" >digits.py
shortened() { sed 's/load_data()/load_data("synthetic", limit=2000)/' digits.py >short.py; }
trains() {
    [ "$(wc -l <digits.py)" -ge 8 ] || { cat digits.py >err; return 1; }
    shortened && env/bin/python short.py >out 2>err && [ -s digits.safetensors ] &&
        accuracy=$(sed -n 's/.* val_accuracy: \([0-9.]*\).*/\1/p' out | tail -n 1) &&
        awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 0.8) }'
}
check "the lines of README.md train a network" trains
notebook() {
    env/bin/python -c '
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))' "$root/examples/python/notebook.ipynb" >out 2>err &&
        grep -Eq 'Test accuracy: (1|0\.9)' out && [ -s report.html ]
}
check "the cells of notebook.ipynb run" notebook
own() {
    env/bin/python -c 'import os, sys, cornu; from cornu._binding.library import lib; sys.exit(not os.path.dirname(
cornu.__file__) == os.path.dirname(lib.path))' >out 2>err
}
check "the library is the wheel's" own
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
