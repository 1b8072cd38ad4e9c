#!/bin/sh
# What README.md shows works: its program compiles without a warning, runs and learns; its line with
# a branch makes a model; its commands run, shortened, on synthetic data or the README's own text.
# tests/run: in check
build=$BUILD
case $BUILD in
*sanitize-thread) extra=-fsanitize=thread ;;
*sanitize*) extra=-fsanitize=address,undefined ;;
*) extra= ;;
esac
root=$(pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0
report() { # report STATUS NAME
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not ok: $2"; fi
}

# A tree as the README's reader has it: its program in examples/, what `make` built, and a cc that
# makes warnings errors.
tree=$folder/tree
mkdir -p "$tree/examples" "$tree/build" "$folder/bin"
ln -s "$root"/"$build"/* "$tree/build/"
ln -sfn "$root/build/include" "$tree/build/include"
cat > "$folder/bin/cc" <<END
#!/bin/sh
PATH='$PATH'
exec ${CC:-$(command -v cc)} -std=c11 -Wall -Wextra -Wpedantic -Werror $extra "\$@"
END
chmod +x "$folder/bin/cc"
export PATH="$folder/bin:$PATH"
run() { (cd "$tree" && eval "$1") > "$folder/log" 2>&1; } # run LINE

# The program: the lines from #include to the closing brace, without the indentation.
source=$tree/examples/own_model.c
sed -n '/^    #include/,/^    }$/s/^    //p' README.md > "$source"
command=$(sed -n 's/^    \(cc examples\/own_model.c .*\)$/\1/p' README.md)
sed '1d; /^$/d' examples/own_model.c | cmp - "$source"
report $? "the program of README.md is examples/own_model.c"
learns() { # learns NAME: own_model.c, compiled and run as the README says
    rm -f "$tree/rings.safetensors"
    run "$command"
    status=$?
    [ $status = 0 ] || cat "$folder/log"
    report $status "$1 compiles and runs"
    accuracy=$(sed -n 's/.* val_accuracy: \([0-9.]*\).*/\1/p' "$folder/log" | tail -n 1)
    awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 0.95) }'
    report $? "$1 learns (validation accuracy ${accuracy:-none}, expected 0.95)"
    [ -s "$tree/rings.safetensors" ]
    report $? "$1 saves its model"
}
learns "the program of README.md"

# The lines for a TPU: the last one goes to the end, the others after cornu_compile.
sed -n '/^    CornuStrategy \*strategy/,/^$/{/./p}' README.md > "$folder/strategy"
sed '$d' "$folder/strategy" > "$folder/begin"
tail -n 1 "$folder/strategy" > "$folder/end"
[ "$(wc -l < "$folder/strategy")" -ge 3 ] &&
    sed -i -e "/CORNU_ACCURACY });/r $folder/begin" -e "/cornu_model_free/r $folder/end" \
        "$source" &&
    [ "$(grep -c strategy "$source")" = "$(wc -l < "$folder/strategy")" ]
report $? "README.md has lines for a TPU"
learns "the program of README.md on a TPU"

# The line for several processes, which is of one process when the program is started alone.
{
    echo '#include <cornu/cornu.h>'
    echo 'int main(void) {'
    grep '^    CornuStrategy \*workers' README.md
    echo '    const bool right = cornu_process_count(cornu_strategy_processes(workers)) == 1;'
    echo '    cornu_strategy_free(workers);'
    echo '    return !right; }'
} > "$source"
run "$command"
status=$?
[ $status = 0 ] || cat "$folder/log"
report $status "the line of README.md for several processes"

# The line with a branch, in a program made around it.
{
    echo '#include <cornu/cornu.h>'
    echo 'int main(void) {'
    echo '    CornuSymbol *in = cornu_input(.shape = { 10, 16 }), *x = in;'
    grep '^    x = cornu_call(' README.md
    echo '    CornuModel *model = cornu_model(.inputs = { in }, .outputs = { x });'
    echo '    const bool right = cornu_model_layer_count(model) == 3;'
    echo '    cornu_model_free(model);'
    echo '    return !right; }'
} > "$source"
run "$command"
status=$?
[ $status = 0 ] || cat "$folder/log"
report $status "the line of README.md that branches"

# The server, and the request to it, at a free port.
request=$(sed -n 's/^    \(curl .*v1\/models.*\)$/\1/p' README.md)
serves() { # serves COMMAND: what cornu_serve answers to the request has predictions
    (cd "$tree" && exec $1 --port 0) > "$folder/address" 2> "$folder/log" &
    server=$!
    for i in $(seq 1500); do
        grep -q . "$folder/address" || ! kill -0 $server 2>/dev/null || { sleep 0.02; continue; }
        break
    done
    url=$(sed -n 's/^listening on //p' "$folder/address")
    [ "$url" ] && eval "${request/http:\/\/localhost:8501/$url} -s" > "$folder/answer" &&
        grep -q '"predictions": \[\[' "$folder/answer" && kill $server && wait $server
}

# The commands, in their order, since one may need what an earlier one saved. Appended flags make
# them shorter; under a sanitizer a step of a full batch takes minutes.
less=${extra:+--batch-size 8} images=200
[ -z "$extra" ] || images=24
image=$(ls "${CORNU_DATA:-none}"/digit-images/*.png 2>/dev/null | head -n 1)
[ -z "$image" ] || cp "$image" "$tree/IMAGE.png"
sed -n 's/^    \(build\/[a-z_]* .*\)$/\1/p' README.md > "$folder/commands"
while read -r line; do
    shorter=
    case $line in
    build/cornu_serve*)
        if "$tree/build/cornu_serve" --model x=x 2>&1 | grep -q 'without libmicrohttpd'; then
            echo "skipping 1: libmicrohttpd: make deps-serve, then make"
            skipped=$((skipped + 1))
        else
            serves "$line"
            report $? "$line"
        fi
        continue ;;
    build/predict*) [ -n "$image" ] || {
        echo "skipping 1: data sets: CORNU_DATA=FOLDER with digit-images"
        skipped=$((skipped + 1))
        continue
    } ;;
    build/shakespeare_lstm*--epochs*) ;;
    build/shakespeare_lstm*)
        shorter="--text $root/README.md --sequence-length 20 --epochs 1 --steps-per-epoch 20 $less" ;;
    build/translate*--epochs*) ;;
    build/translate*) shorter="--pairs 200 --epochs 1" ;;
    build/image_folder*)   # on plots of the commands before it
        for class in curves confusion; do
            mkdir -p "$tree/DIR/$class"
            for i in 1 2 3 4 5; do
                cp "$tree/pictures/$class.png" "$tree/DIR/$class/$i.png"
            done
        done
        shorter="--epochs 1" ;;
    build/table*)
        for file in FILE NEW; do
            awk 'BEGIN { print "x,COLUMN"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 }' \
                > "$tree/$file.csv"
        done
        shorter="--epochs 1" ;;
    build/compare_devices*--scaling*)
        shorter="--data synthetic --limit 256 --epochs 2 --batch-size 32" ;;
    build/explain*) shorter=$less ;;
    build/own_op*) ;;
    build/quantize*) shorter="--data synthetic --limit 256" ;;
    build/estimator_mnist*--train_steps?0*) shorter="--data_dir synthetic --limit 64" ;;
    build/estimator_mnist*)
        shorter="--data_dir synthetic --limit 64 --batch_size 8 --train_steps 2" ;;
    build/cartpole*) shorter="--episodes 20" ;;
    *) shorter="--data synthetic --limit $images --epochs 1 $less" ;;
    esac
    run "$line $shorter"
    status=$?
    [ $status = 0 ] || cat "$folder/log"
    report $status "$line $shorter"
done < "$folder/commands"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
