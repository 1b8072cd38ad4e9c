# The package cornu for Python: tests/python/test_*.py, by unittest. They need Python and NumPy;
# PYTHON names another interpreter, such as one that has Keras, which some of them need.
# tests/run: takes 60 s
. tests/python/find_python.sh
skip() { printf '%s\n' "skipping 1: $1" "0 passed, 0 failed, 1 skipped"; exit; }
case $BUILD in
*sanitize*) skip "sanitizer: a build without SANITIZE" ;;
esac
find_python numpy
[ -n "$python" ] || skip "python3 with numpy: make deps-test"
export CORNU_LIBRARY=${CORNU_LIBRARY:-$(realpath "$BUILD/libcornu.so")}
export PYTHONPATH=$PWD/nn/python PYTHONDONTWRITEBYTECODE=1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$python" -W error::SyntaxWarning -m unittest discover -v -s tests/python 2>&1 | tee "$log"
ran=$(sed -n 's/^Ran \([0-9]*\) tests\? in .*/\1/p' "$log")
count() { sed -nE "s/^(OK|FAILED) .*$1=([0-9]+).*/\2/p" "$log"; }
sed -nE "s/.*\.\.\. skipped ['\"](.*)['\"]\$/skipping 1: \1/p" "$log"
skipped=$(count skipped) failures=$(count failures) errors=$(count errors)
# A class that is skipped as a whole is not among those that ran.
[ -n "$ran" ] || { ran=1 errors=1; }
failed=$((${failures:-0} + ${errors:-0}))
passed=$((ran - failed))
if [ $passed -lt 50 ] && [ $failed = 0 ]; then failed=1; echo "only $ran tests ran"; fi
if "$python" -m pyflakes --version >/dev/null 2>&1; then
    unclean=$("$python" -m pyflakes nn/python tests/python examples/python)
    if [ -z "$unclean" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo "$unclean"
else
    echo "skipping 1: pyflakes: apt-get install python3-pyflakes"
    skipped=$((${skipped:-0} + 1))
fi
echo "$passed passed, $failed failed, ${skipped:-0} skipped"
[ $failed = 0 ]
