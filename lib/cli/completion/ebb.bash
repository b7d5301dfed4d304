# bash completion for ebb: source <(ebb completion bash)
# With bash 3.2: eval "$(ebb completion bash)"

_ebb_complete() {
    local tab=$'\t'
    local IFS=$' \t\n'
    COMPREPLY=()

    # Bash parts words at = and :. Put them together again: a word goes on where the line has no blank before it.
    local -a words=()
    local rest=$COMP_LINE word blanks offset=0 i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        blanks=${rest%%[![:space:]]*}
        rest=${rest:${#blanks}}
        offset=$((offset + ${#blanks}))
        # The word at the cursor ends at the cursor.
        if ((i == COMP_CWORD && offset + ${#word} > COMP_POINT)); then
            if ((COMP_POINT > offset)); then word=${word:0:COMP_POINT - offset}; else word=""; fi
        fi
        if ((i == 0)) || [[ -n $blanks ]]; then
            words[${#words[@]}]=$word
        else
            words[${#words[@]} - 1]=${words[${#words[@]} - 1]}$word
        fi
        rest=${rest:${#word}}
        offset=$((offset + ${#word}))
    done
    local current=${words[${#words[@]} - 1]}

    # Readline replaces what follows the last = or : alone.
    local kept="" breaks=""
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
    [[ -n $breaks ]] && kept=${current%"${current##*[$breaks]}"}

    local -a values=() abouts=()
    local line value paths=files
    while IFS= read -r line; do
        if [[ $line == :* ]]; then
            paths=${line#:}
        elif [[ -n $line ]]; then
            value=${line%%"$tab"*}
            values[${#values[@]}]=${value#"$kept"}
            abouts[${#abouts[@]}]=${line#*"$tab"}
        fi
    done < <(command ebb complete -- "${words[@]:1}" 2>/dev/null)

    if type compopt >/dev/null 2>&1; then
        case $paths in
        none) compopt +o default +o bashdefault ;;
        folders) compopt -o dirnames +o default +o bashdefault ;;
        esac
    fi

    local count=${#values[@]}
    if ((count == 1)) && [[ ${values[0]} == *[=,:] ]] && type compopt >/dev/null 2>&1; then
        compopt -o nospace
    fi
    # Descriptions are shown in lists only: where one of several is put on the line, they would be put there too.
    local longest=0 shown width=$((${COLUMNS:-80} - 2))
    if ((count > 1)) && [[ ${COMP_TYPE:-9} == 63 || ${COMP_TYPE:-9} == 33 || ${COMP_TYPE:-9} == 64 ]]; then
        for ((i = 0; i < count; i++)); do
            ((${#values[i]} > longest)) && longest=${#values[i]}
        done
    fi
    for ((i = 0; i < count; i++)); do
        shown=${values[i]}
        [[ $shown == *[!A-Za-z0-9_./:=,@%+-]* ]] && printf -v shown %q "$shown"
        if ((longest > 0)) && [[ -n ${abouts[i]} ]]; then
            printf -v shown "%-*s  (%s)" "$longest" "${values[i]}" "${abouts[i]}"
            ((${#shown} > width)) && shown=${shown:0:width - 4}...\)
        fi
        COMPREPLY[i]=$shown
    done
}

complete -o bashdefault -o default -F _ebb_complete ebb
