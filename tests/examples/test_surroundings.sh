# Commands where something around them is not as usual: descriptors that are closed, pipes in place
# of files, names that would control a terminal.
. tests/checks.sh
small="--data synthetic --limit 200 --batch-size 50 --epochs 1 --verbose 2"

# What is printed or logged must not end up in a file that has the descriptor of a closed stream.
closed() {
    CORNU_LOG=debug "$programs/cornu" train mnist_cnn $small --tensorboard events --save closed.safetensors \
        --history history.json --trace trace.json --backup kept --backup-freq 1 <&- >&- 2>&-
    [ $? = 1 ] &&            # its output is lost, and it reports that if it can
        ! grep -raq 'cornu: \|Epoch 1\|Test loss' events closed.safetensors history.json trace.json &&
        "$programs/cornu" train mnist_cnn $small --save open.safetensors >out 2>err &&
        cmp open.safetensors closed.safetensors && [ ! -e kept ] &&
        [ "$(find events -type f -size +1k | wc -l)" -ge 1 ]
}
check "closed standard descriptors" closed

mkfifo pipe pipe.safetensors history
# refuses MESSAGE COMMAND ARGUMENT...: at once, without waiting for the other end of the pipe.
refuses() {
    timeout 20 "$programs/cornu" "${@:2}" >out 2>err
    [ $? = 1 ] && grep -q -- "$1" err
}
check "a pipe as a table" refuses 'pipe: is a pipe, expected a file' table pipe --target x
check "a pipe as a text" refuses 'pipe: is a pipe' train shakespeare_lstm --text "$PWD/pipe" --epochs 1
check "a pipe as weights" refuses 'pipe.*is a pipe' train mnist_cnn $small --load pipe.safetensors
check "a pipe as labels" refuses 'pipe: is a pipe' train mnist_cnn $small --labels pipe
check "a pipe as a picture" refuses 'pipe: is a pipe' predict open.safetensors pipe
check "a pipe without a reader" refuses 'history: .*a pipe without a reader' train mnist_cnn $small \
    --history history

# Names of files and folders cannot control the terminal.
evil=$'a\033[2J\302\2332J'
controls() { LC_ALL=C grep -aq $'\033\\|\302\233' out err; }
"$programs/cornu" train mnist_cnn $small --plots plots >out 2>err
mkdir -p "pictures/$evil" pictures/b
cp plots/curves.png plots/filters.png "pictures/$evil"
cp plots/predictions.png plots/confusion.png pictures/b
shown() { # shown PATTERN COMMAND ARGUMENT...: its output has the pattern, and no control characters
    "$programs/cornu" "${@:2}" >out 2>err
    cat out err | grep -q -- "$1" && ! controls
}
check "classes of pictures" shown ' a\\x1b\[2J\\xc2\\x9b2J,' image_folder pictures --epochs 1 \
    --validation-split 0
cp plots/curves.png "$evil.png"
check "a picture that cannot be read" shown '\\x1b\[2J.*png' predict open.safetensors "$evil.png"
printf 'x,%s\n1,2\n2,w\n' "$evil" >table.csv
check "a table's column" shown 'column a\\x1b\[2J' table table.csv --target x
mkdir -p "$evil/mnist"
check "a data directory" shown '\\x1b\[2J.*mnist/' train mnist_cnn $small --data "$evil"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
