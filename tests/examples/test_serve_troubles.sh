# cornu serve in trouble: folders that cannot be read, more connections than descriptors, versions
# that fail to load for a while, large bodies, packed ones, clients that have said all they say.
# tests/run: takes 40 s, waits, in check
root=$PWD
. tests/checks.sh
. "$root/tests/examples/serving.sh"

# Root may read everything, so the server is another user.
as=()
if [ "$(id -u)" = 0 ]; then
    if command -v setpriv >/dev/null; then
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
        chmod 755 "$folder"
    fi
fi
begin_as() { # as begin, by that user
    : >address
    "${as[@]}" "$serve" serve --port 0 --poll 0.05 "$@" >address 2>log </dev/null &
    server=$!
    wait_for grep -q '^listening' address || { cat log; return 1; }
    url=$(sed -n 's/^listening on //p' address)
}
answers() { post 200 "\\[$1.5 \\]" '{"instances": [1]}' half:predict 2>/dev/null; }
count() { # count N PATTERN: lines of the log
    [ "$(grep -c -- "$2" log)" = "$1" ] || { cat log >err; return 1; }
}
polls() { sleep 0.7; }   # a dozen of them

# ---- Folders that cannot be read ----

half_plus models/half/1/model.safetensors 1
if ((${#as[@]})) || [ "$(id -u)" != 0 ]; then
    begin_as --models models
    # unreadable FOLDER N [PATTERN]: what was served is, once the log has the pattern, and is looked
    # after again later.
    unreadable() {
        chmod 000 "$1"
        [ -z "${3-}" ] || wait_for grep -q -- "$3" log
        polls
        answers "$2" && count 0 'no longer serving'
        local status=$?
        chmod 755 "$1"
        return $status
    }
    # Told once, not at each look; a look under way when the folder above closes may tell the other.
    told() { local n; n=$(grep -c -- "$1" log); ((n == 1 || n == 2)) || { cat log >err; return 1; }; }
    above='cannot read the folder models: Permission denied'
    within='models/half has no version that can be read: Perm'
    check "the folder of models cannot be read" unreadable models 1 "$above"
    check "which is told once" count 1 "$above"
    check "nor a model's" unreadable models/half 1 "$within"
    check "which is told once, too" told "$within"
    check "nor a version's" unreadable models/half/1 1
    half_plus models/half/2/model.safetensors 2
    check "then a new version is served" wait_for answers 2
    # It gets its number when it cannot be read any more: the server looks all the time.
    half_plus models/half/next/model.safetensors 3 && chmod 000 models/half/next &&
        mv models/half/next models/half/3
    polls
    check "one whose folder cannot be read is not" answers 2
    check "and its status says so" get 200 '"version": "3", "state": "END", "status": \{
        "error_code": "NOT_FOUND", "error_message": ".*cannot be read: Permission denied"' \
        /v1/models/half
    chmod 755 models/half/3
    check "until it can" wait_for answers 3
    chmod 000 models/half/3/model.safetensors
    touch models/half/3/model.safetensors
    tries() { grep -c 'cannot serve half version 3: models/.*Permission denied' log; }
    tried() { (($(tries) >= $1)); }
    check "a file that cannot be opened" wait_for tried 1
    check "leaves what was loaded of it" answers 3
    check "it is tried again" wait_for tried 3
    # After 0.05, 0.1, 0.2, 0.4 s, and so on, which are five in the first second; polls are twenty.
    sleep 1
    check "more and more seldom" eval '(($(tries) <= 10))'
    chmod 644 models/half/3/model.safetensors
    served() { [ "$(grep -c 'serving half version 3' log)" = 2 ]; }
    check "until it can be opened, though nothing else has changed" wait_for served
    check "which is not told twice" eval 'polls; served'
    rm -r models/half/*
    check "a folder that is empty is" wait_for post 404 'Latest\(half\)' '{"instances": [1]}' \
        half:predict
    half_plus models/half/4/model.safetensors 4
    check "and again is not" wait_for answers 4
    check "it ends with 0" end
else
    skip 1 "setpriv: apt-get install util-linux, or not as root"
fi

# ---- Versions that fail to load ----

rm -rf models && half_plus models/half/1/model.safetensors 1
mkdir models/half/2 && printf junk >models/half/2/model.safetensors
begin --models models
polls
check "a damaged version is tried once" count 1 'cannot serve half version 2'
kill -HUP $server
check "SIGHUP tries it again" wait_for count 2 'cannot serve half version 2'
polls
check "once" count 2 'cannot serve half version 2'
check "the one before is served" answers 1
end

# ---- More connections than descriptors ----

idle() { # 1,100 clients that say nothing, while the server may have 1,024 descriptors
    local fds=() fd i host
    ulimit -n 4096 2>err || return 0
    : >address
    (ulimit -n 1024; exec "$serve" serve --port 0 --poll 0.05 --models models --timeout 20) \
        >address 2>log </dev/null &
    server=$!
    wait_for grep -q '^listening' address || return 1
    url=$(sed -n 's/^listening on //p' address)
    host=${url#http://}
    grep -q 'at most 960 connections at once, not 1000, with 1024 descriptors' log || return 1
    answers 1 || return 1
    for ((i = 0; i < 1100; i++)); do
        exec {fd}<>"/dev/tcp/${host%:*}/${host#*:}" && fds+=("$fd")
    done 2>err
    ((${#fds[@]} >= 1000)) || return 1
    half_plus models/half/5/model.safetensors 5
    wait_for count 1 'serving half version 5' || return 1
    polls
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    wait_for answers 5 && count 1 'no longer serving' && count 0 'cannot be read'
}
check "1,100 idle connections" idle
end

# ---- Bodies ----

half_plus half.safetensors 1
begin --model half=half.safetensors --max-body 0.1 --timeout 20
row=$(printf '1,%.0s' $(seq 45000))
printf '{"instances": [%s1]}' "$row" >body_90k
many() { # of which the 27th would find no room if the others had kept theirs
    local i
    for ((i = 0; i < 60; i++)); do
        asks 200 '"predictions": \[1.5, 1.5' -H Expect: --data-binary @body_90k \
            "$url/v1/models/half:predict" || return 1
    done
}
check "bodies give their room back" many
full_of_bodies() { # 40 that are on their way keep it
    local fds=() fd i host=${url#http://}
    for ((i = 0; i < 40; i++)); do
        exec {fd}<>"/dev/tcp/${host%:*}/${host#*:}" || return 1
        fds+=("$fd")
        { printf 'POST /v1/models/half:predict HTTP/1.1\r\nHost: a\r\n'
          printf 'Content-Length: 90100\r\n\r\n'
          head -c 90000 body_90k; } >&"$fd"
    done
    wait_for asks 503 'No room for the body of the request beside those of others' -H Expect: \
        --data-binary @body_90k "$url/v1/models/half:predict" || return 1
    answers 1 || return 1
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    wait_for asks 200 predictions -H Expect: --data-binary @body_90k "$url/v1/models/half:predict"
}
check "while there is no room, 503" full_of_bodies

packed() { # packed STATUS PATTERN FILE [ENCODING]
    asks "$1" "$2" -H Expect: -H "Content-Encoding: ${4-gzip}" --data-binary "@$3" \
        "$url/v1/models/half:predict"
}
gzip -c body_90k >body.gz
check "gzip" packed 200 '"predictions": \[1.5, 1.5' body.gz
{ printf '{"instances":' | gzip; printf '[3]}' | gzip; } >two.gz
check "gzip in two members" packed 200 '"predictions": \[2.5 \]' two.gz x-gzip
{ printf '{"instances": [1'; head -c 20000000 /dev/zero | tr '\0' ' '; printf ']}'; } |
    gzip >bomb.gz
check "20 MB of blanks in gzip" packed 413 'at most 0.1 MiB \(--max-body\) when it is' bomb.gz
head -c 100 body.gz >cut.gz
check "gzip that is cut off" packed 400 'is not gzip, or cut off' cut.gz
check "what is not gzip" packed 400 'is not gzip, or cut off' body_90k
check "another encoding" packed 400 'Content-Encoding is br, expected gzip or none' body_90k br
check "no encoding by name" packed 200 predictions body_90k identity

# A client that shuts down its sending side, which needs a language that can.
half_closed() { # half_closed BYTES...: it sends them one after the other
    perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(shift) or die;
        $s->autoflush(1);
        for my $part (@ARGV) { print $s $part; select undef, undef, undef, 0.05 }
        $s->shutdown(1);
        print while <$s>' "${url#http://}" "$@" >out 2>err
    tr -d '\r\n' <out | grep -q 'HTTP/1.1 200 OK.*"predictions": \[1.5 *\]'
}
if perl -MIO::Socket::INET -e 1 2>err; then
    head=$'POST /v1/models/half:predict HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n'
    check "a client that has said all" half_closed "$head{\"instances\": [1]}"
    check "in two parts" half_closed "$head" '{"instances": [1]}'
else
    skip 1 "perl: apt-get install perl"
fi
end

begin --model half=half.safetensors --threads 1 --batch-timeout 300
if [ -s out ] && perl -MIO::Socket::INET -e 1 2>err; then
    check "a client that has said all, and waits" half_closed "$head{\"instances\": [1]}"
fi
end

# ---- Memory ----

mib() { awk -v what="$1:" '$1 == what { print int($2 / 1024) }' "/proc/$server/status"; }
large() { # large ITEM MOST STATUS PATTERN: 16 MB of the item, which need at most so many MiB
    local before peak after status
    begin --model half=half.safetensors || return 1
    before=$(mib VmRSS)
    {
        printf '{"instances":['
        yes "$1," | head -n "$((16000000 / (${#1} + 1)))" | tr -d '\n'
        printf '%s]}' "$1"
    } >large
    asks "$3" "$4" -H Expect: --data-binary @large "$url/v1/models/half:predict"
    status=$?
    peak=$(mib VmHWM) after=$(mib VmRSS)
    end
    echo "$1: $before MiB before, $peak at most, $after after" >&3
    echo "$1: $before MiB before, $peak at most, $after after" >>err
    ((status == 0 && peak - before < $2 && after - before < 24))
}
check "16 MB of empty objects" large '{}' 40 400 'keys must be equal to: x'
check "16 MB of numbers" large 1 200 200 '"predictions": \[1.5, 1.5, '
check "16 MB of strings" large '""' 40 400 'Type: String is not of expected type: float'
check "16 MB of lists" large '[[1]]' 120 200 '"predictions": \[\[1.5\], \[1.5\], '

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
