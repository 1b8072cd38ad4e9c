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

# And so do those of the pages that it names; NAME and its like in them stand for others.
pages_exist() {
    local page word
    grep -oE '`(nn|tensor|device)/[a-z/]*README\.md`' "$root/README.md" | tr -d '`' | sort -u >names
    [ "$(wc -l <names)" -ge 8 ] || { cat names >err; return 1; }
    while read -r page; do
        [ -f "$root/$page" ] || { echo "README.md: no $page"; continue; }
        grep -oE '`(nn|tensor|device|datasets|models|examples|tests)/[^` ]*`' "$root/$page" |
            tr -d '`' | grep -vE 'NAME|FAMILY|RULES' |
            while read -r word; do [ -e "$root/$word" ] || echo "$page: no $word"; done
    done <names >err
    [ ! -s err ]
}
check "its pages name files and folders that exist" pages_exist

# The path of a training step is at most ten files, and each function is defined in its file.
path_exists() {
    local bad=0 file function
    sed -nE 's/^\| `([^`]+\.c)` \| \(?`(\w+)`\)? \|.*/\1 \2/p' "$root/README.md" >path
    (($(wc -l <path) >= 6 && $(wc -l <path) <= 10)) || { wc -l path >err; return 1; }
    while read -r file function; do
        grep -qE "^[a-zA-Z].*\b$function\(([^;]*|.*[^;])$" "$root/$file" ||
            { echo "README.md: no $function in $file"; bad=1; }
    done <path >err
    return $bad
}
check "README.md's path of a step names functions of these files" path_exists

# A training step goes that way: what stands between cornu_fit and a kernel when it runs, where gdb
# can tell. What is in parentheses has returned by then.
path_is_true() {
    local bad=0 file function
    sed -nE 's/^\| `([^`]+\.c)` \| `(\w+)` \|.*/\1 \2/p' "$root/README.md" >path
    while read -r file function; do
        grep -q "^#.* $function .* at .*$file:" out ||
            { echo "README.md: $function is not in the backtrace"; bad=1; }
    done <path >err
    return $bad
}
case $BUILD in
*sanitize*) ;;
*) gdb -q -batch -ex 'break conv2d' -ex run -ex backtrace --args "$programs/mnist_cnn" \
       --data synthetic --limit 32 --epochs 1 >out 2>err </dev/null ;;
esac
if grep -q '^#0 .* conv2d ' out 2>/dev/null; then
    check "README.md's path of a step is that of a run" path_is_true
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
    skip 1 "doxygen: apt-get install doxygen"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
