# SPDX-License-Identifier: BSD-3-Clause
# convertize.fish - what fish offers behind "convertize"

# Prints the words of the command line from the first one on that isn't an option of convertize: a command or a program.
function __convertize_rest
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --converter --port --bypass --paths --fallback --cookie --timeout --withholding --silence --cache --log --library \
                    --method --executable --config --device --never-device --backup-device --tables --quota
                set -e words[1]
            case --
                set -e words[1]
                break
            case '-*'
            case '*'
                break
        end
        set -e words[1]
    end
    string join \n -- $words
end

# Is the command one of these? Without arguments: is there none so far?
function __convertize_is
    set -l rest (__convertize_rest)
    if not set -q argv[1]
        not set -q rest[1]
    else
        set -q rest[1]; and contains -- $rest[1] $argv
    end
end

# Is a program to be run?
function __convertize_runs
    not __convertize_is; and not __convertize_is check enable disable list environment paths status top
end

# Prints what is offered behind that program.
function __convertize_program
    complete -C (string join ' ' -- (string escape -- (__convertize_rest)) (commandline -ct))
end

function __convertize_units
    set -l manager
    contains -- --user (commandline -opc); and set manager --user
    systemctl $manager list-unit-files --type=service --no-legend --no-pager 2>/dev/null | string replace -r ' .*' ''
end

function __convertize_enabled
    set -l directory /etc/systemd/system
    if contains -- --user (commandline -opc)
        set directory ~/.config/systemd/user
        set -q XDG_CONFIG_HOME; and set directory $XDG_CONFIG_HOME/systemd/user
    end
    for file in $directory/*.service.d/zz-convertize.conf
        string replace -r '.*/([^/]*)\.d/[^/]*$' '$1' -- $file
    end
end

complete -c convertize -f
complete -c convertize -n __convertize_is -a check -d 'Test machine, networks, converters'
complete -c convertize -n __convertize_is -a enable -d 'Convert a service or login sessions'
complete -c convertize -n __convertize_is -a disable -d 'Undo that'
complete -c convertize -n __convertize_is -a list -d 'Show enabled services'
complete -c convertize -n __convertize_is -a environment -d 'Print the variables of a login session'
complete -c convertize -n __convertize_is -a paths -d 'Show or manage the networks'
complete -c convertize -n __convertize_is -a status -d 'Show converted connections'
complete -c convertize -n __convertize_is -a top -d 'Show connections until q is typed'
complete -c convertize -n __convertize_is -a '(__fish_complete_command)'
complete -c convertize -n __convertize_runs -a '(__convertize_program)'
complete -c convertize -n '__convertize_is check; and not string match -q -- "-*" (commandline -ct)' -a '(__fish_complete_command)'
complete -c convertize -n '__convertize_is enable' -a '(__convertize_units)' -d Service
complete -c convertize -n '__convertize_is disable' -a '(__convertize_enabled)' -d 'Enabled service'

set -l sets '__convertize_is; or __convertize_is check enable environment'
set -l asks '__convertize_is; or __convertize_is check enable environment paths'
set -l shows '__convertize_is; or __convertize_is check enable environment paths status top'
complete -c convertize -n $shows -l converter -x -a '(__fish_print_hostnames)' -d 'Its address or name'
complete -c convertize -n $shows -l port -x -d 'Port of converters without one'
complete -c convertize -n $asks -l paths -x -d 'Networks that connections begin on'
complete -c convertize -n $sets -l bypass -x -d 'Destinations to connect to directly'
complete -c convertize -n $sets -l fallback -x -a 'direct none' -d 'Without a usable converter'
complete -c convertize -n $asks -l cookie -x -d 'For the converter'
complete -c convertize -n $asks -l timeout -x -d 'Seconds of silence'
complete -c convertize -n $asks -l beside-vpn -d 'Beside a VPN, too'
complete -c convertize -n $sets -l early-data -d 'Send first bytes in the SYN'
complete -c convertize -n $sets -l no-bypass-mptcp -d 'Convert to MPTCP servers, too'
complete -c convertize -n $sets -l withholding -x -d 'Milliseconds'
complete -c convertize -n $sets -l silence -x -a 'auto never' -d 'Converters may omit responses'
complete -c convertize -n "$sets; or __convertize_is status top" -l cache -x -a 'none (__fish_complete_directories)' -d 'Where programs share facts'
complete -c convertize -n $sets -l log -r -F -d 'A line for each connection'
complete -c convertize -n $sets -l warn -d 'Name what can\'t be converted'
complete -c convertize -n $sets -l library -r -F -d 'To preload'
complete -c convertize -n __convertize_is -l method -x -a 'preload supervise' -d 'Preload or supervise'
complete -c convertize -n __convertize_is -l executable -r -F -d 'The file to run'
complete -c convertize -n '__convertize_is; or __convertize_is check enable disable' -s q -l quiet -d 'No notes and warnings'
complete -c convertize -n '__convertize_is; or __convertize_is enable' -l force -d 'In any case'
complete -c convertize -n '__convertize_is status top' -l watch -d 'Show connections until q is typed'
complete -c convertize -n '__convertize_is check paths status' -l json -d 'One JSON object'
complete -c convertize -n '__convertize_is check' -l fix -d 'Print the remedies'
complete -c convertize -n '__convertize_is check' -a --fix=run -d 'Run the remedies'
complete -c convertize -n '__convertize_is enable disable list' -l user -d 'Own service manager'
complete -c convertize -n '__convertize_is enable disable' -l session -d 'Login sessions'
complete -c convertize -n '__convertize_is enable disable paths' -l dry-run -d 'Change nothing'
complete -c convertize -n '__convertize_is environment' -l shell -d 'Commands for a shell'
complete -c convertize -n '__convertize_is paths' -l manage -d 'Adapt endpoints, rules, tables'
complete -c convertize -n '__convertize_is paths' -l once -d 'Adapt them once'
complete -c convertize -n '__convertize_is paths' -l remove -d 'Remove what an earlier run left'
complete -c convertize -n '__convertize_is paths' -l device -x -a '(__fish_print_interfaces)' -d 'Use only these'
complete -c convertize -n '__convertize_is paths' -l never-device -x -a '(__fish_print_interfaces)' -d 'Leave alone'
complete -c convertize -n '__convertize_is paths' -l backup-device -x -a '(__fish_print_interfaces)' -d 'Use only if no other works'
complete -c convertize -n '__convertize_is paths' -l tables -x -d 'Routing tables'
complete -c convertize -n '__convertize_is paths' -l quota -x -d 'Bytes, then a backup'
complete -c convertize -n 'not __convertize_runs' -l config -r -F -a none -d 'Defaults'
complete -c convertize -n 'not __convertize_runs' -l help -d 'Print a summary'
complete -c convertize -n 'not __convertize_runs' -l version -d 'Print the version'
