#!/bin/sh
# cornu recommend: learns the structure of synthetic events for five seeds, and ratings in
# MovieLens' format; refuses broken lines; its weights depend neither on threads nor on being
# stopped.
# tests/run: in check
build=$BUILD
passed=0 failed=0 skipped=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
out=$folder/out
check() { # check NAME COMMAND...
    name=$1; shift
    if "$@"; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1)); echo "not ok: $name"; cat "$out"
}
says() { grep -q -- "$1" "$out"; }
recommend() { "$build/cornu" recommend --verbose 0 "$@" > "$out" 2>&1; }
auc() { sed -n 's/^Test AUC: \([0-9.]*\).*/\1/p' "$out"; }
best() { sed -n 's/.*synthetic; \([0-9.]*\) by.*/\1/p' "$out"; }
near_best() { awk "BEGIN { exit !($(auc) > $(best) - 0.03) }"; }
if [ ! -x "$build/cornu" ]; then
    printf '%s\n' "skipping 1: programs of examples/: make" "0 passed, 0 failed, 1 skipped"
    exit 0
fi

for seed in 0 1 2 3 4; do
    recommend --data synthetic --limit 300000 --users 300 --items 200 --seed $seed
    check "seed $seed learns the structure" near_best
done

# Users like items of their own parity.
awk 'BEGIN { print "userId,movieId,rating,timestamp"
             for (i = 0; i < 40000; i++) { u = (i * 7919) % 97; m = (i * 104729) % 61
                 printf "%d,%d,%.1f,%d\n", u, m, (u + m) % 2 ? 2.5 : 4.5, 1000000000 + 60 * i } }' \
    > "$folder/ratings.csv"
recommend --data "$folder" --epochs 4
check "ratings are learnt" awk "BEGIN { exit !($(auc) > 0.95) }"
check "what they are" says '^40000 ratings of users below 97 and items below 61, clicks are those '
recommend --data "$folder/ratings.csv" --epochs 1 --threshold 5
check "no rating is 5" says ', 0.0 % of them clicks'
sed -i '123s/,[0-9.]*,/,four,/2; 123s/[0-9.]*,\([0-9]*\)$/four,\1/' "$folder/ratings.csv"
recommend --data "$folder/ratings.csv"
check "a broken line fails" [ $? = 1 ]
check "and is named by line and column" says 'csv: line 123, column [0-9]*: "four,.*expected a rat'

small="--data synthetic --limit 100000 --epochs 4"
recommend $small --threads 1 --save "$folder/one.safetensors"
recommend $small --threads 2 --save "$folder/two.safetensors"
check "the same bits with two threads" cmp "$folder/one.safetensors" "$folder/two.safetensors"
timeout -s KILL 1 "$build/cornu" recommend $small --verbose 0 --backup "$folder/backup" > "$out" 2>&1
recommend $small --backup "$folder/backup" --save "$folder/resumed.safetensors"
check "killed and resumed, the same bits" \
    cmp "$folder/one.safetensors" "$folder/resumed.safetensors"
recommend $small --epochs 1 --load "$folder/one.safetensors"
check "weights are loaded" awk "BEGIN { exit !($(auc) > 0.75) }"
sharded="--data synthetic --limit 20000 --epochs 1 --batch-size 256 --verbose 0 --shards 4"
recommend $sharded --save "$folder/alone.safetensors"
"$build/cornu" run -n 2 "$build/cornu" recommend $sharded --save "$folder/both.safetensors" > "$out" 2>&1
check "two processes, the same bits" cmp "$folder/alone.safetensors" "$folder/both.safetensors"
recommend --data synthetic --limit 20000 --epochs 1 --batch-size 256 --tensorboard "$folder/logs"
check "with TensorBoard" says '^Test AUC'
recommend --data synthetic --limit 20000 --epochs 1 --batch-size 256 --device tpu
check "trains on eight shards" says '^Test AUC'

# Rows lie in mapped files: a disk that is full is an error before they are written there.
if unshare -rm mount -t tmpfs none "$folder" 2>/dev/null; then
    unshare -rm sh -c 'mount -t tmpfs -o size=1m none "$1" && TMPDIR=$1 exec "$2" recommend --data synthetic --limit 300000' \
        sh "$folder" "$build/cornu" > "$out" 2>&1
    check "a full TMPDIR fails" [ $? = 1 ]
    check "and is named" says 'no room for [0-9]* bytes: No space left on device; TMPDIR names another'
else
    echo "skipping 2: mounts: root, or unprivileged user namespaces"
    skipped=$((skipped + 2))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
