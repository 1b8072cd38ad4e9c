# cornu image_folder: the report, the confusion matrix and the predictions of its validation pictures, as
# README promises them for images; in colour and in grey, with and without a cache.
. tests/pictures.sh
. tests/checks.sh
if ! command -v python3 >/dev/null || ! draw_pictures 20; then
    skip_all 1 "python3: make deps-test"
fi
learn() { # learn ARGUMENT...
    "$programs/cornu" image_folder --image-size 20 --epochs 2 --batch-size 16 --threads 1 "$@" pictures \
        >out 2>err
}
reported() { # of 19 pictures, a fifth of the 96
    learn "$@" && grep -q '^Per-class report on the validation pictures:' out &&
        grep -qE '^ +a +[01]\.[0-9]{4} ' out && grep -qE '^weighted avg .* 19$' out
}
check "a report on each class" reported --verbose 2
check "also without a cache" reported --verbose 2 --no-cache
silent() { learn --verbose 0 && ! grep -q report out; }
check "no report under --verbose 0" silent
unsplit() { learn --verbose 2 --validation-split 0 && ! grep -q report out; }
check "none without validation pictures" unsplit
drawn() {
    rm -rf plots && learn --verbose 0 --plots plots "$@" &&
        [ "$(cd plots && echo *)" = "confusion.png curves.png filters.png predictions.png" ]
}
check "four pictures" drawn
cp plots/predictions.png first.png
check "four pictures of grey ones" drawn --color-mode grayscale
# The accuracy of the report is that of evaluate.
agrees() {
    learn --verbose 2 && awk '/^Validation accuracy/ { a = $3 } /^ +accuracy / { b = $2 }
                              END { exit !(a != "" && a == b) }' out
}
check "the report's accuracy is the validation accuracy" agrees
if true; then
    together() {
        mv plots/predictions.png one.png && rm -r plots &&
            "$programs/cornu" run -n 2 "$programs/cornu" image_folder --image-size 20 --epochs 2 \
                --batch-size 16 --threads 1 --shards 2 --verbose 2 --color-mode grayscale \
                --plots plots pictures >out 2>err &&
            grep -qE '^weighted avg .* 19$' out && [ -s plots/predictions.png ]
    }
    check "in two processes" together
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
