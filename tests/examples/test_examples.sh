# The examples that one reads: each is one short file, includes <cornu/cornu.h> and the standard
# library alone, takes no flags, builds outside the tree, and learns from little data.
# tests/run: takes 60 s
. tests/checks.sh

root=$OLDPWD
python3 "$root/tests/examples/little_data.py" data >out 2>err || { cat err; exit 1; }
export CORNU_DATA=$folder/data

standard='assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal'
standard="$standard|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string"
standard="$standard|tgmath|threads|time|uchar|wchar|wctype"

few() { [ "$2" -le "$3" ] || { echo "$1: $2, expected at most $3" >err; return 1; }; }
lacks() { ! grep -nE "$1" "$2" >err; }   # lacks PATTERN FILE
is_short() {
    few "lines" "$(wc -l <"$file")" 90 && few "columns" "$(wc -L <"$file")" 100 || return 1
    head -n 1 "$file" | grep -q '^/\*' || { echo "$example.c begins with no comment" >err; return 1; }
}
stands_alone() {
    grep '^ *# *include' "$file" | grep -vE "^#include <($standard)\.h>$" >included
    [ "$(cat included)" = "#include <cornu/cornu.h>" ] || { cp included err; return 1; }
}
builds() {
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror "$file" -I"$root/build/include" \
        -L"$programs" -lcornu -Wl,-rpath,"$programs" -lm -o "example_$example" >out 2>err
}
runs() {
    mkdir -p "in_$example" && cd "in_$example" || return 1
    timeout "${CORNU_TEST_TIMEOUT:-300}" "../example_$example" >../out 2>../err </dev/null
    local status=$?
    cd .. && return $status
}
says() { tail -n 9 out | grep -qE "$1" || { echo "expected: $1" >err; return 1; }; }
in_table() { grep -q "^| \`$example.c\` |" "$root/examples/README.md"; }

# What an example says at its end if it has learned.
said() { # said NAME
    case $1 in
        mnist_cnn) echo '^Test accuracy: (1|0\.[6-9])' ;;   # its averages want more steps
        mnist_convnet|fashion_mnist_cnn|custom_loop|colab_mnist|predictor|estimator)
            echo '^Test accuracy: (1|0\.9)' ;;
        own_model) echo 'val_accuracy: (1|0\.9)' ;;
        own_layer) echo '^y = (1\.9|2\.0).* x \+ (0\.9|1\.0)' ;;
        own_op) echo ' native ' ;;
        own_step) echo '^Loss: [1-3][0-9][0-9]\.' ;;
        functional) echo '^Comparisons: (1|0\.[89])' ;;
        transfer) echo 'has not seen: (1|0\.[6-9])' ;;
        xray) echo '^Validation AUC: (1|0\.9)' ;;
        spoken_digits) echo '^Validation accuracy: (1|0\.9)' ;;
        weather) echo 'ahead: [01]\.[0-9]* degrees; of the day before: 3\.' ;;
        image_folder) echo '^Validation accuracy: (1|0\.9)' ;;
        autoencoder) echo '^Squared error: 0\.0[0-5].* of the noise 0\.1067' ;;
        embedding) echo '^Test AUC: 0\.8[67].*: 0\.88' ;;
        text_classification) echo '^0\.[89].* Coriolanus: The common people' ;;
        timeseries) echo 'ahead: 0\.0[0-9]*; .* now: 0\.1' ;;
        shakespeare_lstm) echo '^Validation loss: 0\.[0-4]' ;;
        char_gpt) echo '^Validation loss: (0\.|1\.[0-2])' ;;
        model_parallel) echo '^A shard holds 0\.44 MB of weights and 0\.87 MB' ;;
        tpu_strategy) echo 'val_accuracy: (1|0\.9)' ;;
        compare_devices) echo '^tpu .* (1\.0|0\.9)[0-9]* .* apart$' ;;
        cartpole) echo '^Solved after' ;;
        *) echo "no line that $1 prints at its end is known to test_examples.sh" ;;
    esac
}

for file in "$root"/examples/*.c; do
    example=$(basename "$file" .c)
    check "$example is short, and says what it shows" is_short
    check "$example includes cornu/cornu.h and the standard library alone" stands_alone
    check "$example is in the table of examples/README.md" in_table
    check "$example builds from what is installed" builds
    [ "$example" = infer ] && continue   # whose arguments tests/nn/prediction/test_inference.sh has
    [ "$example" = own_op ] || check "$example takes no flags" lacks 'argc|getenv' "$file"
    check "$example runs" runs
    check "$example learns" says "$(said "$example")"
    case $example in
        compare_devices) check "threads give the same bits" says '^cpu  *1 .*  the same bits$' ;;
        functional) check "$example adds" says '^Sums: (1|0\.[3-9])' ;;
        tpu_strategy) check "$example runs on eight replicas" grep -qx 'REPLICAS: 8' out ;;
        colab_mnist) check "$example draws digits" test -s in_colab_mnist/misread.png ;;
        autoencoder) check "$example draws digits" test -s in_autoencoder/denoised.png ;;
        shakespeare_lstm|char_gpt) check "$example writes" grep -qE '(night|people|light)' out ;;
        estimator)
            check "a killed estimator goes on from its checkpoint" runs
            check "and does not train again" grep -q 'Skipping training' err ;;
    esac
done
check "there is room for what comes" few "entries of examples" "$(ls "$root/examples" | wc -l)" 36

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
