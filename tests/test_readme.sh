# What README.md shows works: its programs in C and Python train, its commands run, those in tables
# too (tests/pages.sh).
#
# tests/run: takes 60 s
. tests/checks.sh
. "$OLDPWD/tests/pages.sh"

check "models that the page takes for granted" prepare

# The program, compiled as the page says, learns.
learns() {
    sed -n '/^    #include/,/^    }$/s/^    //p' "$root/README.md" >"$tree/digits.c" &&
        rm -f "$tree/digits.safetensors" &&
        in_tree "$(sed -n 's/^    \(cc digits.c .*\)$/\1/p' "$root/README.md")" &&
        awk -v a="$(sed -n 's/.* val_accuracy: \([0-9.]*\).*/\1/p' out | tail -n 1)" \
            'BEGIN { exit !(a >= 0.95) }' && [ -s "$tree/digits.safetensors" ]
}
check "the program learns" learns

run_page README.md
sed -n 's/^| .*| `\([^`]* [^`]*\)` |$/\1/p; s/^| .*| `\(build[^` ]*\)` |$/\1/p' "$root/README.md" >lines
check "its table has commands" [ "$(wc -l <lines)" -ge 15 ]
while read -r line; do run_line README.md "$line"; done <lines

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
