#!/bin/sh
# What the README shows must work: its program compiles without a warning, runs and learns; its line
# of a branch makes a model; its commands run, on drawn digits or itself, and shortened.
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

# The program: the lines from #include to the closing brace, without the indentation.
sed -n '/^    #include/,/^    }$/s/^    //p' README.md > "$folder/own_model.c"
command=$(sed -n 's/^    \(cc own_model.c .*\)$/\1/p' README.md)
warnings="-std=c11 -Wall -Wextra -Wpedantic -Werror"
command=$(echo "$command" | sed "s|^cc |${CC:-cc} $warnings $extra |
    s|-Ibuild/include|-I$root/build/include|; s|build/libcornu.a|$root/$build/libcornu.a|")
sed '1d; /^$/d' examples/own_model.c | cmp - "$folder/own_model.c"
report $? "the program of README.md is examples/own_model.c"
learns() { # learns NAME: own_model.c, compiled and run as the README says
    rm -f "$folder/rings.safetensors"
    (cd "$folder" && eval "$command") > "$folder/log" 2>&1
    status=$?
    [ $status = 0 ] || cat "$folder/log"
    report $status "$1 compiles and runs"
    accuracy=$(sed -n 's/.* val_accuracy: \([0-9.]*\).*/\1/p' "$folder/log" | tail -n 1)
    awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 0.95) }'
    report $? "$1 learns (validation accuracy ${accuracy:-none}, expected 0.95)"
    [ -s "$folder/rings.safetensors" ]
    report $? "$1 saves its model"
}
learns "the program of README.md"

# The lines for a TPU: the last one goes to the end, the others behind cornu_compile.
sed -n '/^    CornuStrategy/,/^$/{/./p}' README.md > "$folder/strategy"
sed '$d' "$folder/strategy" > "$folder/begin"
tail -n 1 "$folder/strategy" > "$folder/end"
[ "$(wc -l < "$folder/strategy")" -ge 3 ] &&
    sed -i -e "/CORNU_ACCURACY });/r $folder/begin" -e "/cornu_model_free/r $folder/end" \
        "$folder/own_model.c" &&
    [ "$(grep -c strategy "$folder/own_model.c")" = "$(wc -l < "$folder/strategy")" ]
report $? "README.md has lines for a TPU"
learns "the program of README.md on a TPU"

# The line of a branch, in a program around it.
{
    echo '#include <cornu/cornu.h>'
    echo 'int main(void) {'
    echo '    CornuSymbol *in = cornu_input(.shape = { 10, 16 }), *x = in;'
    grep '^    x = cornu_call(' README.md
    echo '    CornuModel *model = cornu_model(.inputs = { in }, .outputs = { x });'
    echo '    const bool right = cornu_model_layer_count(model) == 3;'
    echo '    cornu_model_free(model);'
    echo '    return !right; }'
} > "$folder/own_model.c"
(cd "$folder" && eval "$command") > "$folder/log" 2>&1
status=$?
[ $status = 0 ] || cat "$folder/log"
report $status "the line of README.md that branches"

# The commands, in their order: the second may need what the first one saved. A step of their
# batches takes minutes under a sanitizer.
less=${extra:+--batch-size 8} images=200
[ -z "$extra" ] || images=24
sed -n 's/^    \(build\/[a-z_]* .*\)$/\1/p' README.md > "$folder/commands"
while read -r program arguments; do
    case $program in
    build/predict)
        image=$(ls "${CORNU_DATA:-none}"/digit-images/*.png 2>/dev/null | head -n 1)
        [ -n "$image" ] || { skipped=$((skipped + 1)); continue; }
        arguments=$(echo "$arguments" | sed "s|IMAGE.png|$image|") ;;
    build/shakespeare_lstm)
        text="--text $root/README.md --sequence-length 20 --epochs 1 --steps-per-epoch 20 $less"
        case $arguments in
        --epochs*) ;;
        *) arguments="$arguments $text" ;;
        esac ;;
    build/image_folder)   # of what the commands before it drew
        for class in curves confusion; do
            mkdir -p "$folder/DIR/$class"
            for i in 1 2 3 4 5; do
                cp "$folder/pictures/$class.png" "$folder/DIR/$class/$i.png"
            done
        done
        arguments="$arguments --epochs 1" ;;
    build/table)
        for file in FILE NEW; do
            awk 'BEGIN { print "x,COLUMN"; for (i = 0; i < 60; i++) print i % 7 "," i % 5 }' \
                > "$folder/$file.csv"
        done
        arguments="$arguments --epochs 1" ;;
    build/explain) arguments="$arguments $less" ;;
    *) arguments="$arguments --data synthetic --limit $images --epochs 1 $less" ;;
    esac
    (cd "$folder" && "$root/$build/${program#build/}" $arguments) > "$folder/log" 2>&1
    status=$?
    [ $status = 0 ] || cat "$folder/log"
    report $status "$program $arguments"
done < "$folder/commands"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
