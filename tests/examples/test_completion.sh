# What bash completes on cornu's command lines: commands, models, and what the --help of a command
# lists: flags, and the choices of those that have choices.
root=$(pwd)
. tests/checks.sh
shopt -s progcomp
cornu=$programs/cornu

same_commands() { # in the order of cornu help
    "$cornu" help | sed -n '/^Commands:/,$s/^  \([a-z_]*\)  .*/\1/p' >expected
    "$cornu" --complete >words 2>err && { cat expected; echo help; } | diff - words >out &&
        [ "$(wc -l <words)" -ge 19 ]
}
check "--complete lists the commands of cornu help" same_commands
models() {
    "$cornu" --complete models >words 2>err && [ "$(wc -l <words)" -ge 8 ] &&
        while read -r model; do "$cornu" summary "$model" >out 2>err || return 1; done <words
}
check "--complete models lists what each command takes as a MODEL" models
commands=$("$cornu" --complete | grep -vx 'help\|run')   # run has --help alone

same_flags() {
    local name bad=0
    for name in $commands; do
        "$cornu" "$name" --help | sed -n 's/^  \(--[^ ]*\).*/\1/p' >expected
        "$cornu" help "$name" | cmp - <("$cornu" "$name" --help) || bad=1
        [ "Cornu $(sed -n 's/^#define CORNU_VERSION "\(.*\)"/\1/p' "$root/device/version.h")" = \
          "$("$cornu" "$name" --version)" ] || bad=1
        "$cornu" "$name" --complete >words 2>err || return 1
        cut -d ' ' -f 1 words | diff expected - >out || { echo "$name" >err; bad=1; }
    done
    [ "$(wc -w <<<"$commands")" -ge 17 ] && return $bad
}
check "--complete lists the flags of --help, of every command" same_flags

# In --help the choices are a list with commas, which is wrapped; "pjrt:..." becomes "pjrt:".
same_choices() {
    local name flag value choices joined count=0
    for name in $commands; do
        joined=$("$cornu" "$name" --help | tr -s '\n ' '  ' | sed 's/\.\.\.//g')
        "$cornu" "$name" --complete >words
        while read -r flag value choices; do
            [ -n "$choices" ] || continue
            count=$((count + 1))
            case $value in
            *'|'*) [[ $joined == *"$flag ${choices// /|} "* ]] ;;
            *) [[ $joined == *" $flag $value "*": ${choices// /, }"* ]] ;;
            esac || { echo "$name: $flag: $choices" >err; return 1; }
        done <words
    done
    [ $count -ge 50 ]
}
check "its choices are those of --help" same_choices

# ---- The function for bash ----

if [ -r /usr/share/bash-completion/bash_completion ]; then
    . /usr/share/bash-completion/bash_completion
else
    echo "no bash-completion, whose function for commands in commands is replaced"
    _command_offset() { # cornu's own, or the names of commands
        local i line=$COMP_LINE COMP_LINE
        for ((i = 0; i < $1; i++)); do line=${line#* }; done
        COMP_LINE=$line
        if [[ $line == *' '* ]]; then _cornu "${line%% *}"
        else COMPREPLY=($(compgen -c -- "$line")); fi
    }
fi
. "$root/.packaging/completion.bash"

# completes LINE WORDS: what bash would offer for the last word of LINE. Bash splits words at = and
# :, too.
completes() {
    local line=$1 wanted=$2 split
    split=$(sed 's/\([=:]\)/ \1 /g' <<<"$line")
    COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9 COMP_KEY=9
    read -ra COMP_WORDS <<<"$split"
    case $line in *' ' | *[=:]) COMP_WORDS+=('') ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    compopt() { echo "compopt $*" >options; }
    rm -f options
    _cornu "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>err
    echo "${COMPREPLY[*]}" >out
    [ "${COMPREPLY[*]}" = "$wanted" ]
}
PATH="$programs:$PATH"
check "a command" completes "cornu pre" "predict"
check "all commands" completes "cornu " "$("$cornu" --complete | paste -sd ' ')"
check "flags of cornu itself" completes "cornu --v" "--version"
check "a command to be helped with" completes "cornu help imag" "image_folder"
check "nothing more then" completes "cornu help train " ""
check "a model" completes "cornu train mnist_cnn_" "mnist_cnn_bn"
: >mnist.onnx
mkdir mnist_models
check "models, files and folders" completes "cornu summary mnist" \
    "mnist_cnn mnist_cnn_bn mnist_convnet mnist.onnx mnist_models"
check "a model behind flags" completes "cornu train --epochs 3 --augment-flip --device=tpu shake" \
    "shakespeare_lstm shakespeare_lstm_quick"
check "only one" completes "cornu predict mnist_cnn mni" ""
check "none where none is taken" completes "cornu table mni" ""
check "a flag" completes "cornu predict --pol" "--policy"
check "flags behind a model" completes "cornu train mnist_cnn --steps-per-" \
    "--steps-per-epoch --steps-per-execution"
check "the choices of a flag" completes "cornu predict --policy mixed_" "mixed_bfloat16 mixed_float16"
check "all choices of a flag" completes "cornu predict --precision " "highest high default"
check "choices after =" completes "cornu predict --policy=fl" "float32"
check "choices with a colon" completes "cornu explain --device tpu:v5" "v5e-8 v5p-8"
check "files, which bash completes where no words are offered" \
    completes "cornu train mnist_cnn --save di" ""
check "folders" completes "cornu train mnist_cnn --plots di" ""
folders() { grep -q dirnames options; }
check "folders are completed by bash" folders
check "flags of cornu run, which has only --help" completes "cornu run --res" "--restarts"
check "their values are typed" completes "cornu run -n " ""
mkdir bin
ln -s /bin/true bin/started_by_cornu
PATH="$PWD/bin:$PATH"
check "what it starts is a command" completes "cornu run -n 2 started_by" "started_by_cornu"
check "also behind --" completes "cornu run -n 2 -- started_by" "started_by_cornu"
check "which completes itself" completes "cornu run -n 2 --grace 3 cornu trai" "train"
check "with its flags" completes "cornu run -n 2 -- cornu train mnist_cnn --steps-per-e" \
    "--steps-per-epoch --steps-per-execution"

# ---- In a shell without bash-completion ----

unset -f _get_comp_words_by_ref __ltrim_colon_completions _comp_command_offset _command_offset
check "alone: a command" completes "cornu pre" "predict"
check "alone: a model" completes "cornu train mnist_cnn_" "mnist_cnn_bn"
check "alone: a choice after =" completes "cornu predict --policy=fl" "float32"
check "alone: choices with a colon" completes "cornu explain --device tpu:v5" "v5e-8 v5p-8"
check "alone: nothing is printed" [ ! -s err ]

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
