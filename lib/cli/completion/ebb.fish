# fish completion for ebb: ebb completion fish > ~/.config/fish/completions/ebb.fish

function __ebb_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (command ebb complete -- $words[2..-1] "$current" 2>/dev/null)
    set -l paths files
    for line in $lines
        if string match -q -- ':*' "$line"
            set paths (string sub -s 2 -- "$line")
        else if test -n "$line"
            printf '%s\n' "$line"
        end
    end
    set -l option (string match -r -- '^--[^=]*=' "$current")
    set -l begun (string replace -r -- '^--[^=]*=' '' "$current")
    switch "$paths"
        case files
            for path in (__fish_complete_path "$begun")
                printf '%s%s\n' "$option" "$path"
            end
        case folders
            for path in (__fish_complete_directories "$begun")
                printf '%s%s\n' "$option" "$path"
            end
    end
end

complete -c ebb -e
complete -c ebb -f -k -a '(__ebb_complete)'
