# The documents name functions and files that exist, and Doxygen makes pages of the public headers
# without a warning.
root=$(pwd)
. tests/checks.sh

# Every cornu_name in the table of Keras' names is in a public header.
names_exist() {
    grep -oE '`(cornu|CORNU|Cornu)_?[A-Za-z0-9_]+`' "$root/nn/README.md" | tr -d '`' |
        sort -u >names
    [ "$(wc -l <names)" -gt 80 ] || return 1
    local bad=0 word
    while read -r word; do
        grep -rqwE --include='*.h' "$word|${word}_from|${word/#CORNU_/X\\(}" \
            "$root"/{nn,datasets,tensor,device} ||
            { echo "nn/README.md: no $word"; bad=1; }
    done <names >err
    return $bad
}
check "nn/README.md names what there is" names_exist

pages=$(cd "$root" && find . -name 'build*' -prune -o -name '*.md' -print | sed 's,^\./,,' | LC_ALL=C sort)

# A stranger reads one screen.
is_short() { # is_short PAGE LINES
    [ "$(wc -l <"$root/$1")" -le "$2" ] || { echo "$1 has $(wc -l <"$root/$1") lines, expected $2"; return 1; } >err
}
check "README.md has 150 lines at most" is_short README.md 150
check "device/README.md has 200 lines at most" is_short device/README.md 200
is_narrow() { ! awk 'length > 100 { print "README.md:" FNR ": " length " columns, expected 100" }' \
    "$root/README.md" | grep . >err; }
check "README.md has 100 columns at most" is_narrow

# Paths that pages name in `code` exist, from the top or from the page's folder; NAME and its like in
# them stand for others. What is gone is in the section of old names.
paths_exist() {
    local page word
    for page in $pages; do
        sed '/^## Old names/,$d; /^    /d' "$root/$page" |
            grep -oE '`(nn|tensor|device|datasets|models|examples|tests)/[^` ]*`' | tr -d '`' |
            grep -vE 'NAME|FAMILY|RULES' |
            while read -r word; do
                echo "$word" >>names
                [ "$(compgen -G "$root/$word"; compgen -G "$root/$(dirname "$page")/$word")" ] ||
                    echo "$page: no $word"
            done
    done >err
    [ "$(sort -u names | wc -l)" -gt 80 ] && [ ! -s err ]
}
check "the pages name files and folders that exist" paths_exist

# And so do the targets of make in `code`.
targets_exist() {
    local page word
    cat "$root"/{Makefile,.packages.mk} $(find "$root"/{.packaging,device,nn,examples,tests} -name '*.mk') |
        grep -E '^[a-z][a-z0-9 -]*:' | sed 's/:.*//' | tr ' ' '\n' | sort -u >targets
    for page in $pages; do
        grep -oE '(`|^    (.*&& )?)make [a-z][a-z0-9/-]*' "$root/$page" | sed 's/.*make //' |
            grep -v / |
            while read -r word; do grep -qx -- "$word" targets || echo "$page: no make $word"; done
    done >err
    [ "$(wc -l <targets)" -gt 30 ] && [ ! -s err ]
}
check "the pages name targets of make that exist" targets_exist

# The anchors of a page as GitHub makes them of its headings.
anchors_of() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
links_lead_somewhere() {
    local page link path
    : >linked
    for page in $pages; do
        grep -v '^    ' "$root/$page" | grep -oE '\]\([^)]*\)' | sed 's/^](//; s/)$//' |
            grep -v '^https\?:' |
            while read -r link; do
                path=$root/$page
                [ "${link%%#*}" ] && path=$(realpath -m "$root/$(dirname "$page")/${link%%#*}")
                [ -e "$path" ] || { echo "$page: no $link"; continue; }
                echo "${path#"$root/"}" >>linked
                case $link in
                *'#'*) anchors_of "$path" | grep -qx -- "${link#*#}" || echo "$page: no heading for $link" ;;
                esac
            done
    done >err
    [ "$(wc -l <linked)" -gt 40 ] && [ ! -s err ]
}
check "the links of all pages lead to files and headings" links_lead_somewhere
are_linked() {
    local page
    for page in $pages; do
        [ "$page" = README.md ] || grep -qx "$page" linked || echo "no page links to $page"
    done >err
    [ ! -s err ]
}
check "each page is linked from another" are_linked

# The path of a training step is at most ten files, and each function is defined in its file.
path_page=device/host/README.md
path_exists() {
    local bad=0 file function
    sed -nE 's/^\| `([^`]+\.c)` \| \(?`(\w+)`\)? \|.*/\1 \2/p' "$root/$path_page" >path
    (($(wc -l <path) >= 6 && $(wc -l <path) <= 10)) || { wc -l path >err; return 1; }
    while read -r file function; do
        grep -qE "^[a-zA-Z].*\b$function\(([^;]*|.*[^;])$" "$root/$file" ||
            { echo "$path_page: no $function in $file"; bad=1; }
    done <path >err
    return $bad
}
check "the path of a step names functions of these files" path_exists

# A training step goes that way: what stands between cornu_fit and a kernel when it runs, where gdb
# can tell. What is in parentheses has returned by then. A frame's file may be that of a function
# which is inlined where it stands.
path_is_true() {
    local bad=0 file function
    sed -nE 's/^\| `([^`]+\.c)` \| `(\w+)` \|.*/\1 \2/p' "$root/$path_page" >path
    while read -r file function; do
        grep -q "^#.* $function " out ||
            { echo "$path_page: $function is not in the backtrace"; bad=1; }
    done <path >err
    return $bad
}
case $BUILD in
*sanitize*) ;;
*) gdb -q -batch -ex 'break conv2d' -ex run -ex backtrace --args "$programs/cornu" \
       train mnist_cnn --data synthetic --limit 32 --epochs 1 >out 2>err </dev/null ;;
esac
if grep -q '^#0 .* conv2d ' out 2>/dev/null; then
    check "the path of a step is that of a run" path_is_true
else
    skip 1 "gdb: apt-get install gdb"
fi

# The passes of a compilation have the order in which passes.c calls them, in its header and in the
# page's picture.
passes_in_order() {
    local compile=$root/device/host/compile
    local passes='simplify|decompose|distribute|combine|fuse|plan_memory|verify'
    grep -oE "cornu__(plan_)?($passes)\(" "$compile/passes.c" |
        sed 's/cornu__//; s/plan_verify/verify/; s/($//' >called
    sed -nE "s/^ \*     ($passes) .*/\1/p" "$compile/passes.h" >in_header
    sed -nE "s/^    (device\/host\/compile\/)? +($passes) .*/\2/p" "$root/device/host/README.md" >in_page
    [ "$(wc -l <called)" -ge 8 ] && diff called in_page >err &&
        grep -v verify called | diff - in_header >err
}
check "the passes have one order" passes_in_order

# The table of golden files lists every folder.
golden_told() {
    local bad=0 path
    for path in "$root"/tests/golden/*/; do
        grep -q "^|.*\`$(basename "$path")/\`.* |" "$root/tests/golden/README.md" ||
            { echo "tests/golden/README.md: no $(basename "$path")/"; bad=1; }
    done >err
    return $bad
}
check "tests/golden/README.md tells of all folders" golden_told

# And every public name of these kinds is in the table.
names_complete() {
    local kinds='Layer|Loss|Metric|Optimizer|Schedule|Callback|Initializer|Regularizer|Constraint'
    local bad=0 word
    { find "$root/nn" -name '*.h' -exec cat {} + | sed -nE "s/^Cornu($kinds) \**(cornu_[a-z0-9][a-z0-9_]*)_from\(.*/\2/p"
      sed -nE 's/^ +X\(([A-Z0-9_]+),.*/CORNU_\1/p' "$root/nn/layers/activations.h"
      sed -nE 's/^#define (CORNU_[A-Z_]+) +cornu_init.*/\1/p' "$root/nn/weights/initializers.h"
    } | grep -v '^CORNU_DEFAULT_' | sort -u >names
    [ "$(wc -l <names)" -gt 150 ] || return 1
    while read -r word; do
        grep -q "\`$word\`" "$root/nn/README.md" ||
            { echo "nn/README.md: $word is missing"; bad=1; }
    done <names >err
    return $bad
}
check "nn/README.md names all layers, losses, metrics and their like" names_complete

if command -v doxygen >/dev/null; then
    pages() {
        make -s -C "$root" docs BUILD="$folder/build" >out 2>err &&
            grep -q "stride defaults to the pool" \
                build/docs/html/structCornuPooling2dConfig.html &&
            grep -q CORNU_BF16 build/docs/html/type_8h.html
    }
    check "make docs has no warning, and comments reach their fields" pages
else
    skip 1 "doxygen: apt-get install doxygen"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
