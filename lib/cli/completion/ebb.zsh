#compdef ebb
# zsh completion for ebb: source <(ebb completion zsh), or save it as _ebb in a folder of $fpath

_ebb() {
    local -a lines spaced unspaced
    local line value about paths=files tab=$'\t'
    lines=("${(@f)$(command ebb complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    for line in "${(@)lines}"; do
        if [[ $line == :* ]]; then
            paths=${line#:}
        elif [[ -n $line ]]; then
            value=${line%%$tab*}
            about=${line#*$tab}
            # Backslashes and colons part a value from its description.
            value=${value//\\/\\\\}
            value=${value//:/\\:}
            if [[ $value == *[=,:] ]]; then unspaced+=("$value:$about"); else spaced+=("$value:$about"); fi
        fi
    done
    local found=1
    if (($#spaced)); then _describe -V ebb spaced && found=0; fi
    if (($#unspaced)); then _describe -V ebb unspaced -S "" && found=0; fi
    if ((found)); then
        [[ $PREFIX == --*=* ]] && compset -P "*="
        case $paths in
        files) _files && found=0 ;;
        folders) _files -/ && found=0 ;;
        esac
    fi
    return found
}

if [[ ${funcstack[1]} == _ebb ]]; then
    _ebb "$@"
else
    (($+functions[compdef])) || { autoload -Uz compinit && compinit }
    compdef _ebb ebb
fi
