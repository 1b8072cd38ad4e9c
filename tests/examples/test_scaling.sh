# Several processes: cornu compare --scaling, races that cornu run starts, the page of explain.
. tests/checks.sh
limit=${CORNU_TEST_TIMEOUT:-300}
small="--data synthetic --limit 96 --batch-size 16 --threads 1"

compare() { timeout "$limit" "$programs/cornu" compare mnist_cnn $small "$@" >out 2>err </dev/null; }
ranks() { timeout "$limit" "$programs/cornu" run -n 2 "$programs/cornu" "$@" >out 2>err </dev/null; }
says() { grep -q -- "$1" out; }
fails_with() { ! compare "${@:2}" && grep -q -- "$1" err && [ ! -e no ]; }
narrow() { ! grep -qE '^.{81}' out; }

# python_check NAME: the program on stdin succeeds; skipped without Python.
python_check() {
    if command -v python3 >/dev/null; then
        check "$1" python3 -
    else
        skip 1 "python3: make deps-test"
    fi
}

# ---- Measured rows with ranks ----

check "one to two processes" compare --scaling 1,2 --devices cpu,tpu --epochs 2 --json s.json
check "each device has both tables" \
    [ "$(grep -cE '^(Strong|Weak) scaling, measured: ' out)" = 4 ]
check "strong: the same batch" [ "$(grep -cE '^ +[12] +1 +16 +[0-9.]+ ' out)" = 6 ]
check "weak: as many rows a process" [ "$(grep -cE '^ +2 +1 +32 +[0-9.]+ ' out)" = 2 ]
check "one process sends nothing" [ "$(grep -cE '^ +1 +1 +16 .* 1\.00 +100\.0 +0\.0 +0\.00$' out)" = 4 ]
check "the shards are those of the largest group" [ "$(grep -c 'in 2 shards$' out)" = 2 ]
check "the weights are the same" [ "$(grep -c 'trained the same weights: checksum [0-9a-f]*$' out)" = 2 ]
check "modelled rows say so" [ "$(grep -c '^[SW].*scaling, modelled: ' out)" = 2 ]
check "modelled is below measured" eval \
    '[ "$(grep -n "scaling, modelled" out | head -1 | cut -d: -f1)" -gt "$(grep -n "scaling, measured" out | tail -1 | cut -d: -f1)" ]'
check "the tables are narrow" narrow
python_check "the file has the rows" <<'EOF'
import json
measured = json.load(open("s.json"))["measured"]
assert [m["device"] for m in measured] == ["cpu", "tpu"]
for m in measured:
    assert m["label"] == "measured" and m["shards"] == 2 and len(m["checksum"]) == 16
    strong, weak = m["strong"], m["weak"]
    assert [r["ranks"] for r in strong] == [r["ranks"] for r in weak] == [1, 2]
    assert [r["batch_size"] for r in strong] == [16, 16] and strong[0] == weak[0]
    assert weak[1]["batch_size"] == 32 and weak[1]["steps"] == 3 and strong[1]["steps"] == 6
    assert strong[0]["loss"] == strong[1]["loss"]
    assert strong[0]["sent_bytes"] == 0 and strong[1]["sent_bytes"] > 93322 * 4 * 0.9
    for row in strong[1], weak[1]:
        first = strong[0]
        speed_up = row["batch_size"] / row["step_seconds"] * first["step_seconds"] / 16
        assert abs(row["speed_up"] / speed_up - 1) < 1e-9, row
        assert abs(row["efficiency"] / speed_up * 2 - 1) < 1e-9, row
EOF
rm -f s.json
check "shards of one's own, one epoch" compare --scaling 1,3 --devices cpu --epochs 1 --shards 4
check "they are told" says 'in 4 shards$'

for list in 2,2 2,1 0,1 1x 1, "" 257; do
    check "--scaling refuses $list" fails_with "ascending numbers of processes\|needs a value" --scaling "$list"
done
check "fewer shards than processes" fails_with 'a shard for each process' --scaling 1,2 --shards 1
check "no chart" fails_with 'expected only one' --scaling 1,2 --chart no
check "a group that fails" fails_with 'the group of 2 processes has failed' --scaling 2 --devices reference
check "what it says is shown" grep -q 'reference' err
check "a batch of more than there is" fails_with '96 samples, fewer than the batch of 128 for 2' \
    --scaling 1,2 --batch-size 64 --devices cpu --epochs 2
check "processes of processes" eval \
    '! ranks compare mnist_cnn $small --scaling 1,2 && grep -q "started as one of 2 processes" err'

# ---- A race in several processes ----

check "a race" compare --devices cpu,tpu --shards 2 --epochs 2
grep -oE 'Epoch.*loss.*' out | sed 's/[0-9.]* s  //' >alone
check "a race in processes" ranks compare mnist_cnn $small --devices cpu,tpu --shards 2 --epochs 2 --json r.json
check "has one table" [ "$(grep -c '^Measured' out)" = 1 ]
check "which names them" says '2 threads in 2 processes$'
check "and the same losses" eval 'grep -oE "Epoch.*loss.*" out | sed "s/[0-9.]* s  //" | diff - alone'
check "and one file" grep -q '"processes": 2' r.json
check "a cpu has a shard for each" eval \
    'ranks compare mnist_cnn $small --devices cpu --epochs 1 && grep -qE "^cpu +native +float32 +2 " out'

# ---- The page of explain ----

explain="explain mnist_cnn --device tpu --batch-size 16 --steps 1 --threads 1"
check "explain in two processes" ranks $explain
check "says how many" says '^In 2 processes, of which this one, rank 0, has 4 of 8 shards'
check "fits a page" [ "$(wc -l <out)" -le 40 ]
check "all of it" ranks $explain --all --json e.json
check "has rows of exchanges" [ "$(grep -cE '^ *[0-9]+ (send|collective) +[0-9]+ (collective|wait) +[0-9.]+ ' out)" -ge 3 ]
python_check "which are those of the file" <<'EOF'
import json
page = json.load(open("e.json"))
assert page["processes"] == 2 and page["own_shards"] == 4
kinds = [step["kind"] for step in page["steps"]]
exchanges = page["exchanges"]
for e in exchanges:
    assert kinds[e["begin_step"]] in ("send", "collective"), e
    assert kinds[e["end_step"]] in ("wait", "collective"), e
    assert e["bytes_sent"] == e["bytes_received"] > 0 and e["measured"]["seconds"] > 0, e
assert kinds.count("wait") == sum(e["end_step"] < e["begin_step"] for e in exchanges)
EOF

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
