# Completion of the programs' command lines, for bash-completion, which reads this file under the
# name of each program. The words come from the program itself: --complete prints a line "--FLAG
# VALUE CHOICE..." for each flag; cornu_run has only --help. Where there is no list of words, files
# are completed.
_cornu()
{
    local cur prev words cword flags line
    _get_comp_words_by_ref -n := cur prev words cword
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*} cur=${cur#*=}
    fi
    flags=$("$1" --complete 2>/dev/null) ||
        flags=$("$1" --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\) \([A-Z]*\).*/\1 \2/p')
    line=$(grep -e "^$prev " <<<"$flags")
    COMPREPLY=()
    if [[ $line == --*\ ?* ]]; then
        line=${line#* }
        case $line in
        *\ *) COMPREPLY=($(compgen -W "${line#* }" -- "$cur")) ;;
        *DIR*) compopt -o dirnames ;;
        esac
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$(cut -d ' ' -f 1 <<<"$flags")" -- "$cur"))
    fi
    __ltrim_colon_completions "$cur"
}
complete -o bashdefault -o default -F _cornu "${BASH_SOURCE##*/}"
