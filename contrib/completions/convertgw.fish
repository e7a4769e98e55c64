# SPDX-License-Identifier: BSD-3-Clause
# convertgw.fish - what fish offers behind "convertgw"

complete -c convertgw -f
complete -c convertgw -n 'test (count (commandline -opc)) = 1' -a status -d 'How the gateway that runs here is'
complete -c convertgw -l lan -x -a '(command ls /sys/class/net)' -d 'Interface of clients'
complete -c convertgw -l host -d 'Convert this host\'s own programs'
complete -c convertgw -l convert -x -a 'all client destination device dscp mark' -d 'Rule: convert'
complete -c convertgw -l route -x -a 'all client destination device dscp mark' -d 'Rule: route'
complete -c convertgw -l require -x -a 'all client destination device dscp mark' -d 'Rule: convert or refuse'
complete -c convertgw -l refuse-quic -d 'Refuse UDP to port 443'
complete -c convertgw -l converter -x -d Converter
complete -c convertgw -l cookie -x -d Cookie
complete -c convertgw -l cookie-file -r -F -d 'File with a cookie'
complete -c convertgw -l paths -x -d 'Networks in their order'
complete -c convertgw -l converter-timeout -x -d Seconds
complete -c convertgw -l cache -x -a '(__fish_complete_directories)' -d 'Directory for what is learned'
complete -c convertgw -l max-connections -x -d 'Of all clients'
complete -c convertgw -l max-connections-per-client -x -d 'Of each client'
complete -c convertgw -l max-pending -x -d 'Without an answer'
complete -c convertgw -l max-pending-per-client -x -d 'The same of each client'
complete -c convertgw -l client-prefix-v4 -x -d 'Bits that make a client'
complete -c convertgw -l client-prefix-v6 -x -d 'Bits that make a client'
complete -c convertgw -l connect-timeout -x -d 'Seconds for a server'
complete -c convertgw -l stall-timeout -x -d 'Seconds without taking anything'
complete -c convertgw -l half-close-timeout -x -d 'Seconds after one side has closed'
complete -c convertgw -l idle-timeout -x -d 'Seconds on which nothing moves'
complete -c convertgw -l drain-timeout -x -d 'Seconds after SIGTERM'
complete -c convertgw -l mark -x -d 'Two bits of packet marks'
complete -c convertgw -l table -x -d 'Routing table'
complete -c convertgw -l queue -x -d 'Netfilter queue'
complete -c convertgw -l port -x -d 'Port on loopback'
complete -c convertgw -l config -r -F -d 'File with settings'
complete -c convertgw -l check-config -d 'Check all settings'
complete -c convertgw -l workers -x -d Threads
complete -c convertgw -l log-level -x -a 'error warning info debug' -d Level
complete -c convertgw -l log-format -x -a 'text json' -d Format
complete -c convertgw -l log-rate -x -d 'Lines a second'
complete -c convertgw -l metrics -x -d 'Address, or unix:/PATH'
complete -c convertgw -l help -d 'Print a summary'
complete -c convertgw -l version -d 'Print the version'
