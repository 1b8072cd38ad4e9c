# Sourced after checks.sh by tests of cornu serve: models, a server, requests. Ends the test where
# the server was built without libmicrohttpd, or curl is missing.
serve=$programs/cornu

if "$serve" serve --model none=none 2>&1 </dev/null | grep -q 'without libmicrohttpd'; then
    skip_all 1 "libmicrohttpd: make deps-serve, then make"
fi
if ! command -v curl >/dev/null; then
    skip_all 1 "curl: make deps"
fi

# ---- Models: files of layers without weights ----

# model FILE SHAPE SCALE OFFSET [NOTES]: y = x SCALE + OFFSET, for rows x of that shape.
model() {
    local architecture header
    architecture='{"class_name": "Functional", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "name": "x", "inbound_nodes": [],
         "config": {"batch_shape": [null, '$2'], "dtype": "float32", "name": "x"}},
        {"class_name": "Rescaling", "name": "y",
         "config": {"name": "y", "scale": '$3', "offset": '$4'},
         "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config":
             {"shape": [null, '$2'], "dtype": "float32", "keras_history": ["x", 0, 0]}}],
             "kwargs": {}}]}],
        "input_layers": ["x", 0, 0], "output_layers": ["y", 0, 0]}}'
    header=$(printf '%s' "$architecture" | sed ':a;N;$!ba;s/\n */ /g; s/\\/\\\\/g; s/"/\\"/g')
    header='{"__metadata__": {"architecture": "'$header'", "weights": "[]"'$5'}}'
    while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
    mkdir -p "$(dirname "$1")"
    {
        printf "\\x$(printf %02x $((${#header} & 255)))\\x$(printf %02x $((${#header} >> 8)))"
        printf '\0\0\0\0\0\0%s' "$header"
    } >"$1.new"
    mv "$1.new" "$1"
}
half_plus() { model "$1" 1 0.5 "$2"; }   # half_plus FILE N: y = x / 2 + N

# ---- The server ----

# begin ARGUMENT...: starts it, sets $server and $url.
begin() {
    : >address
    "$serve" serve --port 0 --poll 0.05 "$@" >address 2>log </dev/null &
    server=$!
    wait_for grep -q '^listening' address || { cat log; return 1; }
    url=$(sed -n 's/^listening on //p' address)
}
end() { # end [SIGNAL]: and it exits with 0
    kill "-${1:-TERM}" $server
    wait $server
}
wait_for() { # until COMMAND succeeds, at most a minute
    local i
    for ((i = 0; i < 3000; i++)); do "$@" && return; sleep 0.02; done
    return 1
}
connect() { # as descriptor 9
    local host=${url#http://}
    exec 9<>"/dev/tcp/${host%:*}/${host#*:}"
}
# asks STATUS PATTERN CURL...: that status and a body, on one line, in which the pattern is.
asks() {
    local status pattern
    pattern=$(tr -s ' \n' '  ' <<<"$2")
    pattern=${pattern% }
    status=$(curl -s -o body -w '%{http_code}' "${@:3}" 2>err)
    tr -s ' \n' '  ' <body >line
    [ "$status" = "$1" ] && grep -qE -- "$pattern" line && return
    echo "status $status, not $1, or not \"$pattern\":" >err
    head -c 400 line >>err
    return 1
}
post() { asks "$1" "$2" -d "$3" "$url/v1/models/$4"; } # post STATUS PATTERN BODY PATH
get() { asks "$1" "$2" "$url$3"; }                     # get STATUS PATTERN PATH
