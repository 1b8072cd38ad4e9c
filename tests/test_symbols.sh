# The libraries define only cornu names, so that they can be linked with any other BLAS or library;
# the shared one exports public functions and nothing internal.
passed=0 failed=0

# check WHAT UNWANTED: fails if there are unwanted lines, which it prints.
check() {
    if [ -z "$2" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf '%s:\n%s\n' "$1" "$2"
}

case $BUILD in
*sanitize*) printf '%s\n' "skipping 3: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 3 skipped"; exit ;;
esac
global=$(nm --defined-only --extern-only "$BUILD/libcornu.a" 2>/dev/null |
         awk 'NF == 3 { print $3 }')
check "global names in libcornu.a" "$(grep -v '^cornu_' <<<"$global")"
exported=$(nm --dynamic --defined-only "$BUILD/libcornu.so" | awk '{ print $3 }')
check "names exported by libcornu.so" "$(grep -v '^cornu_[a-z]' <<<"$exported")"
soname=$(readelf -d "$BUILD/libcornu.so" | grep SONAME)
check "soname of libcornu.so" "$(grep -v 'libcornu.so.0\]' <<<"$soname")"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
