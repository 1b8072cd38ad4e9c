# cornu translate as users run it: learns a small file, saves, loads and translates; its errors.
program=$(realpath "$BUILD")/cornu
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
passed=0 failed=0
export LC_ALL=C.UTF-8
unset CORNU_ISA BLIS_ARCH_TYPE CORNU_DATA CORNU_DATA_URL XDG_CACHE_HOME

report() { # report STATUS NAME
    if [ "$1" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf 'not ok: %s\n--- stdout, stderr (status %s)\n' "$2" "$status"
    tail -n 20 out err
}

run() { # sets status, out and err
    timeout "${CORNU_TEST_TIMEOUT:-300}" "$program" translate "$@" >out 2>err </dev/null
    status=$?
}

refuses() { # refuses STATUS MESSAGE ARGUMENT...
    local expected=$1 message=$2
    shift 2
    run "$@"
    [ $status = "$expected" ] && grep -Eq -- "$message" err
    report $? "$* exits with $expected and says \"$message\""
}

says() { # says PATTERN: on stdout of the last run
    grep -Eq -- "$1" out
    report $? "says \"$1\""
}

# One pair is learnt by heart.
for i in $(seq 40); do printf 'The cat sleeps.\tEl gato duerme.\n'; done > cats.tsv
small="--channels 16 --hidden 16 --heads 2 --key-dim 8 --batch-size 8 --verbose 0"
run cats.tsv $small --epochs 30 --learning-rate 0.01 --save cats.keras --translate "the CAT sleeps"
[ $status = 0 ] && [ "$(tail -n 1 out)" = "el gato duerme" ]
report $? "a sentence is learnt"
says '^40 pairs from cats.tsv, the last 2 of them for validation'
says '2 sentences that were not trained on: 100.00 % exact, BLEU'
run --epochs 0 --load cats.keras --translate "The cat sleeps" --beams 3
[ $status = 0 ] && [ "$(tail -n 1 out)" = "el gato duerme" ]
report $? "the saved model translates it, by beams"
run cats.tsv --epochs 0 --load cats.keras
[ $status = 0 ]
report $? "the saved model is tested on a file"
run --data synthetic --pairs 60 --epochs 1 $small --device tpu --shards 2
[ $status = 0 ]
report $? "trains on shards and translates on one"
says '^Synthetic: 60 pairs from invented languages'

printf 'a\tb\nno tab\n' > broken.tsv
refuses 1 'broken.tsv: line 2, column 7: no tab' broken.tsv
printf 'a\tb\nc\t\n' > broken.tsv
refuses 1 'broken.tsv: line 2, column 3: the target is empty' broken.tsv
printf 'a\tb\nc\tx\xffy\n' > broken.tsv
refuses 1 'broken.tsv: line 2, column 4: not valid UTF-8' broken.tsv
refuses 1 'no pairs are given, expected FILE.tsv or --data synthetic' --epochs 1
refuses 1 'both a file and --data are given' cats.tsv --data synthetic
refuses 2 '--epochs 0 trains nothing: it needs --load' --epochs 0 cats.tsv
refuses 1 'nothing.tsv' nothing.tsv

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
