# .packaging/debian/changelog, which packages contain, begins with the version of device/version.h,
# has the form that Debian's tools read, and names each version that functions came in.
root=$(pwd)
. tests/checks.sh
log=$root/.packaging/debian/changelog
version=$(sed -n 's/^#define CORNU_VERSION "\(.*\)"/\1/p' "$root/device/version.h")

this_version() {
    head -n 1 "$log" >out
    [ "$version" ] && grep -qx "cornu ($version) [a-z]*; urgency=[a-z]*" out
}
check "it begins with version $version" this_version

# Source: Debian Policy Manual, section 4.4.
well_formed() {
    awk -v week='(Mon|Tue|Wed|Thu|Fri|Sat|Sun), ' '
        !version && /^cornu \([0-9.]+\) [a-z]+; urgency=[a-z]+$/ { version = 1; next }
        version && /^ -- .+ <.+@.+>  / { if ($0 ~ ">  " week "[0-3][0-9] [A-Z][a-z][a-z] 20[0-9][0-9] " \
                                             "[0-9:]+ [+-][0-9]+$" && changes) { version = changes = 0; next } }
        version && /^  (\* |  )[^ ]/ && length <= 80 { changes++; next }
        /^$/ { next }
        { print FILENAME ":" FNR ": " $0; bad = 1 }
        END { exit bad || version }' "$log" >out
}
check "it has the form of Debian's" well_formed
dates() {
    sed -n 's/^ -- .*>  //p' "$log" >out
    while read -r date; do
        [ "$(LC_ALL=C date -uR -d "$date")" = "$date" ] || { echo "$date" >err; return 1; }
    done <out
}
check "its dates are dates" dates
each_version() {
    sed -n 's/^ .*@Base //p' "$root/.packaging/debian/libcornu0.symbols" | sort -u >out
    while read -r since; do
        grep -q "^cornu ($since) " "$log" || { echo "no entry of $since" >err; return 1; }
    done <out
}
check "it has each version of libcornu0.symbols" each_version

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
