# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of dbslower's command line for fish. The program itself lists the candidates: see
# cli/option/complete.h.

# The probes of the files, libraries and processes in the command line, as trace accepts them.
function __dbslower_probes
    set -l file
    set -l before ""
    for word in $argv[3..]
        switch $before
            case -l --lib
                set file -l $word
            case -p --pid
                set -q file[1]; or set file -p $word
            case '*'
                string match -q '*/*' -- $word; and not string match -q '*:*' -- $word; and set file $word
        end
        set before $word
    end
    set -q file[1]; or return 1
    # the names come from a file: accept only those without special characters of the shell
    $argv[1] list $file 2>/dev/null | string replace -r '.* ' '' |
        string match -r '^[A-Za-z0-9_.@-]+:[A-Za-z0-9_.@-]+$' | sort -u
end

function __dbslower_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l before ""
    # fish replaces the whole of --name=value.
    if string match -q -- '--*=*' $current
        set before (string replace -r '=.*' '=' -- $current)
        set -a words (string replace -r '=.*' '' -- $current)
        set current (string replace -r '^[^=]*=' '' -- $current)
    end
    for line in ($words[1] --complete $words "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current | string replace -r '^' -- "$before"
            case :probes
                __dbslower_probes $words; or __fish_complete_path $current
            case ':pids *'
                pgrep -x (string replace ':pids ' '' -- $line) 2>/dev/null | string replace -r '^' -- "$before"
            case :list
                set before "$before"(string replace -r '[^,]*$' '' -- "$current")
            case '*'\t'*'
                set -l parts (string split -m 1 \t -- $line)
                for word in (string split ' ' -- $parts[1])
                    printf '%s\t%s\n' $word $parts[2]
                end
            case '*'
                string split -n , -- (string split -n ' ' -- $line) | string replace -r '^' -- "$before"
        end
    end
end

for name in dbslower dbstat tplist
    complete -c $name -f -a '(__dbslower_complete)'
end
