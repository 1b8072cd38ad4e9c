# Turns what `cornu help` or `cornu help COMMAND` prints into a manual page, so that the two cannot
# differ:
#     cornu help train | awk -f man.awk -v page=cornu-train -v version="Cornu 0.1.0"
# The help is a usage line, what the command is for, and for each flag "  --name VALUE  text", which
# may go on below itself; or, after "Commands:", for each command "  name  text", whose page is
# cornu-name. A paragraph that begins with "Exit status:" replaces the usual one.

function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\&" text : text
}

function finish() {   # the text of the flag before
    if (flags) print roff(text) "."
}

# "usage: cornu train [FLAG]... MODEL": the command in small letters, then its arguments.
NR == 1 {
    sub(/^usage: /, "")
    match($0, /^[a-z_]+( [a-z_]+)*/)
    command = substr($0, 1, RLENGTH)
    arguments = substr($0, RLENGTH + 2)
    next
}

/^Commands:$/ {
    print ".SH COMMANDS"
    listing = 1
    gap = 0
    next
}

listing && /^  [a-z_]+  / {
    name = $1
    sub(/^ *[^ ]* */, "")
    print ".TP\n\\fBcornu " roff(name) "\\fR, \\fBcornu\\-" roff(name) "\\fR(1)\n" roff($0) "."
    next
}

!NF && listing {
    if (seen_command++) listing = 0
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
        print ".TH " toupper(page) " 1 \"\" \"" version "\" \"Cornu\""
        name = $0
        sub(/\.$/, "", name)
        print ".SH NAME\n" roff(page) " \\- " roff(name)
        print ".SH SYNOPSIS\n\\fB" roff(command) "\\fR " roff(arguments)
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
    print ".SH SEE ALSO\n" (page == "cornu" ? "" : "\\fBcornu\\fR(1), ") "\\fBcornu\\fR(7)"
}
