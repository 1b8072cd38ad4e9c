# awk -v tree=FOLDER -f apply.awk TOY: adds what TOY describes to the tree, and prints the paths of
# the files that it changed or made. A line that begins with "==> " says where the lines after it go,
# up to the next such line, without the blank line before it:
#
#     ==> PATH                a new file
#     ==> PATH after TEXT     after the only line of PATH that contains TEXT
#     ==> PATH before TEXT    before it, followed by a blank line
#     ==> PATH at the end     at the end of PATH
#     ==> page PATH ...       the page that tells how (test_howto.sh)
function fail(why) { print "apply.awk: " FILENAME ": " why >"/dev/stderr"; failed = 1; exit 1 }

function apply(    target, line, text, hits) {
    if (path == "") return
    target = tree "/" path
    sub(/\n\n$/, "\n", lines)   # the blank line before the next section
    if (how == "") {
        if ((getline line <target) >= 0) fail(path " is there already")
        system("mkdir -p \"$(dirname '" target "')\"")
        text = lines
    } else {
        while ((getline line <target) > 0) {
            if (how != "end" && index(line, mark)) {
                hits++
                line = how == "after" ? line "\n" lines : lines "\n" line
                sub(/\n$/, "", line)
            }
            text = text line "\n"
        }
        if (how == "end") text = text lines
        else if (hits != 1) fail("\"" mark "\" is in " (hits + 0) " lines of " path)
    }
    close(target)
    printf "%s", text >target
    close(target)
    print path
}

/^==> page / { apply(); path = ""; next }
/^==> / {
    apply()
    path = $2
    lines = how = mark = ""
    if ($0 ~ / at the end$/) how = "end"
    else if (NF > 2) {
        how = $3
        mark = substr($0, index($0, " " how " ") + length(how) + 2)
        if (how != "after" && how != "before") fail("\"" $0 "\"")
    }
    next
}
path != "" { lines = lines $0 "\n" }
END { if (!failed) apply() }
