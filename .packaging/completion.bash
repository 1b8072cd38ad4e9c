# Completion of cornu's command lines, for bash-completion. All words come from the program itself:
# cornu --complete prints its commands, cornu --complete models the networks of models/, cornu COMMAND
# --complete a line "--FLAG VALUE CHOICE..." for each flag; cornu run, which has only --help, starts a
# command, which completes itself. Where there is no list of words, files are completed. Also works
# without bash-completion, in a shell that reads this file alone.

# Where the command that cornu run starts stands in $words; nothing if that is behind the cursor.
_cornu_started()
{
    local i
    for ((i = 2; i < cword; i++)); do
        case ${words[i]} in
        --) echo $((i + 1)); return ;;
        --help | --version) ;;
        -*) ((i++)) ;;
        *) echo $i; return ;;
        esac
    done
    [[ $cur == -* || $prev == -* && $prev != -- ]] || echo $cword
}

# Whether the word at the cursor is the first one of $words that is no flag of $flags nor its value.
_cornu_first_argument()
{
    local i
    for ((i = 2; i < cword; i++)); do
        [[ ${words[i]} == -* ]] || return 1
        [[ ${words[i]} == *=* || $flags$'\n' != *"${words[i]} "[A-Za-z0-9]* ]] || ((i++))
    done
}

_cornu_words() # _cornu_words WORD...: those that begin like the word at the cursor
{
    COMPREPLY=($(compgen -W "$*" -- "$cur"))
}

# The words of the line up to the cursor, which bash also splits at = and :.
_cornu_line()
{
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n := cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line != *' ' ]] || words+=('')
    cword=$((${#words[@]} - 1))
    cur=${words[cword]} prev=${words[cword - 1]}
}

# Bash replaces what is behind the last : alone.
_cornu_behind_colon()
{
    if declare -F __ltrim_colon_completions >/dev/null; then
        __ltrim_colon_completions "$cur"
    elif [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
    fi
}

_cornu()
{
    local cur prev words cword command flags line started
    _cornu_line
    COMPREPLY=()
    command=${words[1]}
    if ((cword == 1)) || [[ $command == help ]]; then
        case $cword$cur in
        1-*) _cornu_words --help --version ;;
        [12]*) _cornu_words $("$1" --complete 2>/dev/null) ;;
        esac
        return
    fi
    if [[ $command == run ]]; then
        started=$(_cornu_started)
        if [[ $started ]]; then
            _cornu_command "$started"
            return
        fi
    fi
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*} cur=${cur#*=}
    fi
    flags=$("$1" "$command" --complete 2>/dev/null) ||
        flags=$("$1" "$command" --help 2>/dev/null | sed -n 's/^  \(--*[a-z-]*\) \([A-Z]*\).*/\1 \2/p')
    line=$(grep -e "^$prev " <<<"$flags")
    if [[ $prev == -* && $line == *\ ?* ]]; then
        line=${line#* }
        case $line in
        *\ *) _cornu_words ${line#* } ;;
        *DIR*) compopt -o dirnames ;;
        esac
    elif [[ $cur == -* ]]; then
        _cornu_words $(cut -d ' ' -f 1 <<<"$flags")
    elif _cornu_first_argument &&
            [[ $("$1" "$command" --help 2>/dev/null | head -n 1) == *" MODEL"* ]]; then
        _cornu_words $("$1" --complete models 2>/dev/null)
        while read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
        compopt -o filenames
    fi
    _cornu_behind_colon
}

# The command line from word $1 on, as if it were typed alone.
_cornu_command()
{
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((cword == $1)); then
        COMPREPLY=($(compgen -c -- "$cur"))
    fi
}

complete -o bashdefault -o default -F _cornu cornu
