# Turns the --help of a program into its manual page, so that the two cannot differ:
#     PROGRAM --help | awk -f man.awk -v program=NAME -v version="Cornu 0.1.0"
# The help is a usage line, what the program is for, and for each flag "  --name VALUE  text", which
# may go on below itself. A paragraph that begins with "Exit status:" replaces the usual one.

function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\&" text : text
}

function finish() {   # the text of the flag before
    if (flags) print roff(text) "."
}

NR == 1 {
    if (program == "") program = $2
    arguments = $0
    sub(/^usage: [^ ]* */, "", arguments)
    next
}

/^  --?[a-z]/ {
    finish()
    if (!flags++) {
        print ".SH OPTIONS"
    }
    flag = $0
    sub(/^ */, "", flag)
    text = flag
    sub(/ .*/, "", flag)                      # --name
    sub(/^[^ ]* /, "", text)
    value = text
    if (!match(value, /  +/)) RSTART = length(value) + 1
    text = substr(value, RSTART + RLENGTH)
    value = substr(value, 1, RSTART - 1)      # VALUE, or nothing
    print ".TP"
    print "\\fB" roff(flag) "\\fR" (value == "" ? "" : " \\fI" roff(value) "\\fR")
    next
}

/^          / {
    sub(/^ */, "")
    text = text " " $0
    next
}

/^Exit status: / {
    sub(/^Exit status: */, "")
    status = roff($0)
    for (taking = 1; taking;) {
        taking = getline > 0 && NF
        if (taking) status = status "\n" roff($0)
    }
    next
}

!NF {
    gap = purpose
}

NF {
    if (!purpose++) {
        print ".TH " toupper(program) " 1 \"\" \"" version "\" \"Cornu\""
        name = $0
        sub(/\.$/, "", name)
        print ".SH NAME\n" roff(program) " \\- " roff(name)
        print ".SH SYNOPSIS\n\\fB" roff(program) "\\fR " roff(arguments)
        print ".SH DESCRIPTION"
    }
    if (gap) print ".PP"
    gap = 0
    print roff($0)
}

END {
    finish()
    if (!status) status = "0 on success, 1 after a failure, 2 after a flag or value it does not know."
    print ".SH EXIT STATUS\n" status
    print ".SH SEE ALSO\n\\fBcornu\\fR(7)"
}
