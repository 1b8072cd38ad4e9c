# What bash completes on the programs' command lines is what their --help lists: flags, and the
# choices of those that have choices.
root=$(pwd)
. tests/checks.sh
shopt -s progcomp

# A program of several files has a room of its own.
programs_with_help=$(cd "$root/examples" && for file in $(grep -l '^int main' ./*.c ./*/*.c); do
    case $file in ./*/*) files=${file%/*} ;; *) files=$file ;; esac
    ! grep -rq options_parse "$files" || basename "$file" .c
done 2>/dev/null)

flags_of_help() { "$programs/$1" --help | sed -n 's/^  \(--[^ ]*\).*/\1/p'; }

same_flags() {
    local name bad=0
    for name in $programs_with_help; do
        [ "$name" = cornu ] && continue   # whose words are commands
        flags_of_help "$name" >expected
        "$programs/$name" --complete >words 2>err || return 1
        cut -d ' ' -f 1 words | diff expected - >out || { echo "$name" >err; bad=1; }
    done
    [ "$(wc -w <<<"$programs_with_help")" -ge 13 ] && return $bad
}
check "--complete lists the flags of --help, in every program" same_flags

# In --help the choices are a list with commas, which is wrapped; "pjrt:..." becomes "pjrt:".
same_choices() {
    local name flag value choices joined count=0
    for name in $programs_with_help; do
        joined=$("$programs/$name" --help | tr -s '\n ' '  ' | sed 's/\.\.\.//g')
        "$programs/$name" --complete >words
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
    echo "no bash-completion, which is replaced by its two functions that are called"
    _get_comp_words_by_ref() { cur=${COMP_LINE##* } prev=${COMP_LINE% *} prev=${prev##* }; }
    __ltrim_colon_completions() {
        [[ $1 != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${1%"${1##*:}"}"}")
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
check "a flag" completes "predict --pol" "--policy"
check "flags with a common beginning" completes "mnist_cnn --steps-per-" \
    "--steps-per-epoch --steps-per-execution"
check "the choices of a flag" completes "predict --policy mixed_" "mixed_bfloat16 mixed_float16"
check "all choices of a flag" completes "predict --precision " "highest high default"
check "choices after =" completes "predict --policy=fl" "float32"
check "choices with a colon" completes "explain --device tpu:v5" "v5e-8 v5p-8"
check "files, which bash completes where no words are offered" completes "mnist_cnn --save di" ""
check "folders" completes "mnist_cnn --plots di" ""
folders() { grep -q dirnames options; }
check "folders are completed by bash" folders
check "flags of cornu_run, which has only --help" completes "cornu_run --res" "--restarts"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
