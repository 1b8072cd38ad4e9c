# What the folders' pages show works, as test_readme.sh has it for README.md: every block of code of
# every page in the tree (tests/pages.sh).
#
# tests/run: takes 240 s
# tests/run: in check
. tests/checks.sh
. "$OLDPWD/tests/pages.sh"

check "models that pages take for granted" prepare

# Those whose commands need the files of others come after them.
pages=$(cd "$root" && find . -name build -prune -o -name '*.md' -print | sed 's,^\./,,' | LC_ALL=C sort |
        grep -v '^README.md$')
check "there are pages" [ "$(wc -w <<<"$pages")" -ge 15 ]
for page in $pages; do run_page "$page"; done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
