/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remedies.h - the remedies that "convertize check" prints, except those that are commands (fact_command())
 *
 * Each is an imperative. Those with conversions are macros so that the compiler checks these printf formats against the arguments.
 */
#ifndef CONVERTIZE_REMEDIES_H
#define CONVERTIZE_REMEDIES_H

#define RESTART "on the converter, systemctl restart convertd"
#define OTHER_PORT "or use another port of the converter"

/* this machine */
#define REMEDY_KERNEL_WITH_MPTCP "upgrade to Linux 6.2 or newer, built with CONFIG_MPTCP"
#define REMEDY_KERNEL_WITH_SYN_DATA "upgrade to Linux 6.2 or newer"
#define REMEDY_ALLOW_MPTCP "let the security policy, such as a seccomp filter, allow it"
#define REMEDY_ALLOW_NETLINK "let the security policy allow sockets of AF_NETLINK"
#define REMEDY_PROGRAM "see that its name is right, and that it is installed"
#define REMEDY_EXECUTABLE "name a program's file, with the permission to execute it (chmod +x)"
#define REMEDY_LIBRARY "install it again, where files may be executed, and for this system's C library"
#define REMEDY_BYPASS "leave that rule out of --bypass (CONVERT_BYPASS)"
#define REMEDY_ALLOW_NETWORK "allow one in --paths (CONVERT_PATHS), or in /etc/convertize.conf"
#define REMEDY_FIRST_NETWORK "connect this machine to a network"
#define REMEDY_SECOND_NETWORK "connect this machine to a second network, for a second path"
#define REMEDY_BESIDE_VPN "give --beside-vpn (CONVERT_BESIDE_VPN=1), if connections may leave it"
#define REMEDY_KEEPER_NM "have NetworkManager make it, which keeps endpoints here: connection.mptcp-flags"
#define REMEDY_KEEPER_MPTCPD "have mptcpd make it, which keeps endpoints here"
#define REMEDY_NM_DISABLE "set connection.mptcp-flags disabled by nmcli connection modify: NetworkManager keeps it"
#define REMEDY_MPTCPD "see the configuration of mptcpd, which keeps it"
#define REMEDY_SERVICE "say the same by paths in /etc/convertize.conf: convertize paths --manage keeps it"
#define REMEDY_WORD_ENDPOINT "see ip mptcp endpoint: delete the one there, or change it to backup"
#define REMEDY_WORD_SERVICE "say the same by paths in /etc/convertize.conf, and systemctl restart convertize-paths"
#define REMEDY_CACHE_OWNER "make it a directory of this user's alone, or give --cache DIRECTORY"
#define REMEDY_ROOM "make room there, or give --cache DIRECTORY"
#define REMEDY_CACHE "give --cache DIRECTORY, one of this user's alone"
#define REMEDY_PATH_NAMES "name one of those that \"ip address\" shows, unless it comes later"
#define REMEDY_SUPERVISION "run it where supervision is permitted: see SUPERVISED PROGRAMS in convertize(1)"

/* the converter's name, address, and refusals */
#define REMEDY_NAME_CONVERTER "name one with --converter ADDR, or with CONVERT_ADDR in the environment"
#define REMEDY_NAME "see that the name is right, and that DNS works here"
#define REMEDY_CARRIER "connect %s: see its cable, or join its wireless network"
#define REMEDY_LET_PORT_AT "have the firewall of %s let TCP to port %u through, " OTHER_PORT
#define REMEDY_ADDRESS "see that the address is right, and that no firewall on the way rejects TCP to this port"
#define REMEDY_NAME_OWN "see that DNS is right: getent ahosts %s"
#define REMEDY_START_HERE "systemctl start convertd here, or name the address of the converter's machine"
#define REMEDY_OWN_ROUTE "delete that route: ip %sroute show table all"
#define REMEDY_ADD_ROUTE "add one, such as ip %sroute add default via ROUTER"
#define REMEDY_OWN_FAMILY "name the converter by an address of the family that this machine has"
#define REMEDY_NO_SYN_ACK \
	"see that the address and the port are right, that its machine runs, and that no firewall drops TCP to this port"
#define REMEDY_SILENT "see that the address and the port are those of a converter; " RESTART
#define REMEDY_NO_CONVERTER "see that the address and the port are those of a converter"
#define REMEDY_START_CONVERTD "on the converter, systemctl start convertd; or see that the port is right"
#define REMEDY_LET_PORT "have the firewall on the way let TCP to this port through, " OTHER_PORT "; without one, " RESTART
#define REMEDY_VERSION "use a converter that speaks version 1"
#define REMEDY_INFO "use a converter that answers Info TLVs"
#define REMEDY_COOKIE "ask its operator for one, and set CONVERT_COOKIE"
#define REMEDY_LATER "try again later"
#define REMEDY_ADMIT_OR_COOKIE "ask its operator to admit this client, or for the right CONVERT_COOKIE"
#define REMEDY_RIGHT_COOKIE "ask its operator for the right cookie, and set CONVERT_COOKIE"
#define REMEDY_NO_COOKIE "leave out --cookie, and unset CONVERT_COOKIE"
#define REMEDY_ALLOW_CLIENT \
	"on the converter, start convertd with --allow-client %s, or with the address that it sees this client by; or ask its operator " \
	"for a cookie, and set CONVERT_COOKIE"
#define REMEDY_CONVERTER_LOG "see the log of the converter"
#define REMEDY_REST "wait, or run rm %s/" CACHE_FILE
#define REMEDY_HOLD_SYN "on the converter, start convertd with --hold-syn on, and see what it lacks"
#define REMEDY_NET_ADMIN \
	"if it is convertd, start it with CAP_NET_ADMIN there, as its systemd unit does: with --hold-syn on it says what it lacks besides"

/* a server */
#define REMEDY_SERVER "see that the server's name and port are right, and that it runs"
#define REMEDY_EGRESS "on the converter, see that it has a route to the server, and that its firewall lets TCP out: ip route get ADDRESS"
#define REMEDY_DESTINATION "on the converter, see allow-destination in convertd.conf, and ip route; or add the server to CONVERT_BYPASS"

#define REMEDY_REACH "on the converter, see convertd status, ip route, and that its firewall lets TCP out"
#define REMEDY_TRY_SERVER "name one that it has to reach: convertize check SERVER[:PORT]"

/* something else answers, or this machine itself */
#define REMEDY_PORTAL "log in to that network with a web browser, " OTHER_PORT
#define REMEDY_OWN_FIREWALL "have this machine's firewall let TCP to port %u out: nft list ruleset"
#define REMEDY_LOSS "see why %s loses packets, such as a weak signal; --paths %s=backup keeps connections off it while others work"
#define REMEDY_ROUTE_OF_NETWORK "add it, by that network's router: ip route add default via ROUTER dev %s metric 1000"
#define REMEDY_BROKEN_FAMILY "mend %s here, or name the converter by the address that answers"
#define REMEDY_FAMILY "name a converter's address of the family that all networks have"

/* packets that a network drops */
#define REMEDY_SYN_DATA_OVER "ask the operator of %s to let data in SYNs through, " OTHER_PORT
#define REMEDY_CONVERTER_FASTOPEN \
	"on the converter, sysctl -w net.ipv4.tcp_fastopen=3; if it is 3 already, upgrade that machine to Linux 6.2 or newer, or ask the " \
	"operator of the network to let data in SYNs through"
#define REMEDY_SYN_DATA \
	"have the firewall that drops them let SYNs with data of any size through, " OTHER_PORT "; programs do without once they have " \
	"learned it"
#define REMEDY_SYN_BYTES "have the firewall that drops them let SYNs with data of any size through, " OTHER_PORT "%s"
#define REMEDY_SYN_BYTES_EARLY "; or leave out --early-data, and unset CONVERT_EARLY_DATA"
#define REMEDY_OPTION_30 "ask the operator of the network to let TCP option 30 through, " OTHER_PORT "%s"
#define REMEDY_TWIN "see the load balancer or firewall in front of this address, or leave the address out of the name"
#define REMEDY_PROXY "see the load balancer or SYN proxy in front of it, " OTHER_PORT
#define REMEDY_OPTION_30_HERE "have this machine's firewall let TCP option 30 (mptcp) through: nft list ruleset"
#define REMEDY_OPTION_30_ENABLED "; see also that net.mptcp.enabled is still 1 there"
#define REMEDY_OPTION_30_JOIN \
	"ask the operator of the network to let TCP option 30 through in each SYN, " OTHER_PORT "; see also ip mptcp limits and " \
	"net.mptcp.allow_join_initial_addr_port there"
#define REMEDY_RATE "on the converter, let TCP to port %u through without a limit on new connections, such as that of ufw limit"
#define REMEDY_PORT_OVER "have the firewall let TCP to port %u through, " OTHER_PORT
#define REMEDY_IPV6_MTU "use another network: IPv6 needs packets of %d bytes"
#define REMEDY_TRANSFER "use another network than %s, where something on the way drops its packets, " OTHER_PORT
#define REMEDY_STALL "try again, since packets are lost at times; if it stays so, use another network, " OTHER_PORT

/* routes */
#define REMEDY_OTHER_NETWORK "find the fault of %s, or route the converter over %s"
#define REMEDY_ROUTER "see that %s is connected, and that this is its router"
#define REMEDY_DEFAULT_ROUTE \
	"add a default route for the address, by its router, which isn't known here: ip %sroute add default via ROUTER dev %s table %s%s%s%s%s"
#define REMEDY_OTHER_RULE "see ip rule and ip route show table %s: they send packets from %s elsewhere"
#define REMEDY_OWN_ADDRESS "see ip address show dev %s: an address may be tentative, or a duplicate (dadfailed)"
#define REMEDY_PING "see what comes back: ping -I %s %s"

#endif
