# SPDX-License-Identifier: BSD-3-Clause
# convertd.fish - what fish offers behind "convertd"

# Is the running converter to be asked for its status?
function __convertd_asks
    set -l words (commandline -opc)
    set -q words[2]; and test "$words[2]" = status
end

function __convertd_congestion
    string split ' ' </proc/sys/net/ipv4/tcp_available_congestion_control
end

complete -c convertd -f
complete -c convertd -n 'test (count (commandline -opc)) = 1' -a status -d 'How the converter that runs here is'
complete -c convertd -l metrics -x -d 'Address, or unix:/PATH, that tells how it is'
complete -c convertd -l config -r -F -d 'More options'

set -l serves 'not __convertd_asks'
complete -c convertd -n $serves -l listen -x -d 'Address and port for clients'
complete -c convertd -n $serves -l shared-address -x -d 'Address that others have as well'
complete -c convertd -n $serves -l no-silence -d 'Offer none without a response'
complete -c convertd -n $serves -l hold-syn -x -a 'auto on off' -d 'Withhold SYNs'
complete -c convertd -n $serves -l hold-time -x -d 'Milliseconds'
complete -c convertd -n $serves -l drop-foreign-syns -d 'Drop SYNs without a request'
complete -c convertd -n $serves -l allow-client -x -d 'Prefix to accept requests from'
complete -c convertd -n $serves -l deny-client -x -d 'Prefix to refuse requests from'
complete -c convertd -n $serves -l allow-destination -x -d 'Prefix and ports to connect to'
complete -c convertd -n $serves -l deny-destination -x -d 'Prefix and ports to refuse'
complete -c convertd -n $serves -l own-address -x -d 'Prefix that is this host\'s own'
complete -c convertd -n $serves -l no-hairpin -d 'Deny destinations that are clients'
complete -c convertd -n $serves -l source -x -d 'Prefix to connect from'
complete -c convertd -n $serves -l preserve-client-address -d 'Connect from the client\'s own address'
complete -c convertd -n $serves -l cookie-key -r -F -d 'Keys to compute cookies with'
complete -c convertd -n $serves -l cookie-lifetime -x -d Seconds
complete -c convertd -n $serves -l cookie-list -r -F -d 'Cookies to accept'
complete -c convertd -n $serves -l cookie-demand -x -d 'Percent of load'
complete -c convertd -n $serves -l max-connections -x -d 'Of all clients'
complete -c convertd -n $serves -l max-connections-per-client -x -d 'Of each client'
complete -c convertd -n $serves -l max-pending -x -d 'Requests without an answer'
complete -c convertd -n $serves -l max-pending-per-client -x -d 'Such requests of each client'
complete -c convertd -n $serves -l max-memory -x -d 'MiB that peers who take nothing may hold'
complete -c convertd -n $serves -l max-memory-per-client -x -d 'The same for each client'
complete -c convertd -n $serves -l max-errors -x -d 'Error replies a second'
complete -c convertd -n $serves -l max-errors-per-client -x -d 'The same for each client'
complete -c convertd -n $serves -l client-prefix-v4 -x -d 'Bits that make a client'
complete -c convertd -n $serves -l client-prefix-v6 -x -d 'Bits that make a client'
complete -c convertd -n $serves -l retry-delay -x -d 'Seconds for clients to wait'
complete -c convertd -n $serves -l request-timeout -x -d 'Seconds for a request'
complete -c convertd -n $serves -l connect-timeout -x -d 'Seconds for a server'
complete -c convertd -n $serves -l stall-timeout -x -d 'Seconds without taking anything'
complete -c convertd -n $serves -l half-close-timeout -x -d 'Seconds after one side has closed'
complete -c convertd -n $serves -l idle-timeout -x -d 'Seconds on which nothing moves'
complete -c convertd -n $serves -l drain-timeout -x -d 'Seconds after SIGTERM'
complete -c convertd -n $serves -l user -x -a '(__fish_complete_users)' -d 'To become'
complete -c convertd -n $serves -l no-syscall-filter -d 'Permit all system calls'
complete -c convertd -n $serves -l no-landlock -d 'Permit all files'
complete -c convertd -n $serves -l workers -x -d Threads
complete -c convertd -n $serves -l congestion-client -x -a '(__convertd_congestion)' -d 'Towards clients'
complete -c convertd -n $serves -l congestion-server -x -a '(__convertd_congestion)' -d 'Towards servers'
complete -c convertd -n $serves -l log-level -x -a 'error warning info debug' -d 'This and all before it'
complete -c convertd -n $serves -l log-format -x -a 'text json' -d 'Or an object a line'
complete -c convertd -n $serves -l log-rate -x -d 'Lines a second'
complete -c convertd -n $serves -l check-config -d 'Are all options right?'
complete -c convertd -n $serves -l make-key -r -F -d 'New file of keys'
complete -c convertd -n $serves -l new-client -x -d 'A name: make its cookie'
complete -c convertd -n $serves -l remove-client -x -d 'A name: withdraw its cookie'
complete -c convertd -n $serves -l help -d 'Print a summary'
complete -c convertd -n $serves -l version -d 'Print the version'
