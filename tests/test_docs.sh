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

# Every path that README.md names in `code` or in the picture of the folders exists, below the
# folders above it.
paths_exist() {
    local bad=0 path
    { grep -v '^    ' "$root/README.md" | grep -oE '`(nn|tensor|device|datasets|models|examples|tests)/[^` ]*`' |
          tr -d '`'
      awk '/^    examples\/ /, /^$/ {
               match($0, /^ */)
               depth = (RLENGTH - 4) / 2
               for (i = 1; i <= NF && sub(/\/,?$/, "/", $i); i++) {
                   above[depth] = $i
                   path = ""
                   for (k = 0; k <= depth; k++) path = path above[k]
                   print path
               }
           }' "$root/README.md"
    } | sort -u >names
    while read -r path; do
        [ -e "$root/$path" ] || { echo "README.md: no $path"; bad=1; }
    done <names >err
    [ "$(wc -l <names)" -gt 40 ] && return $bad
}
check "README.md names files and folders that exist" paths_exist

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
    { find "$root/nn" -name '*.h' -exec cat {} + | sed -nE "s/^Cornu($kinds) \**(cornu_[a-z0-9_]*)_from\(.*/\2/p"
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
    echo "no doxygen"
    skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
