# Sourced: sets `python` to the first interpreter that imports the modules given, or to nothing.
# PYTHON overrides the search.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
        "$candidate" -c "import $1" 2>/dev/null && python=$candidate && return
    done
    python=
}
