/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.h - finds the networks of this host that lead to an address, and binds sockets to them
 *
 * All functions work in hooks, with signals blocked, since they open descriptors for a moment. None needs a privilege.
 */
#ifndef HOST_NETWORKS_H
#define HOST_NETWORKS_H

#include "client/settings.h"
#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define NETWORKS_MAX 8

struct network_policy;

struct network {
	struct in6_addr source; /* this machine's address there; IPv4 as v4-mapped */
	int device;             /* index of the interface */
	char name[IF_NAMESIZE]; /* of the interface */
	bool usual;             /* the kernel chooses it for unbound sockets */
	bool unused;            /* the usual one only: it has no carrier, or shares its address with a better device */
	bool bind_device;       /* binding to the address isn't enough: bind the socket to the interface, too */
	bool backup;            /* its address is an MPTCP endpoint with the flag "backup" */
	bool carrier;
	enum path_use use;      /* by the policy */
	uint8_t preference;     /* the place in CONVERT_PATHS: path_preferences_of() */
	unsigned int fitness;   /* host_address_fitness(); 0: the user forbids it */
};

/*
 * networks_to() - find the networks that lead to @to
 * Finds the fittest address, of @to's family, of each interface with a route to @to, by the rules of host_model.h. The usual one comes
 * first, and is the only one if host_vpn_among() finds a VPN. Asks the kernel by netlink: some thirty system calls, and ten for each
 * interface. Returns the number of networks, 0 if netlink is forbidden.
 */
size_t networks_to(const union sockaddr_ip *to, const struct network_policy *policy, struct network out[NETWORKS_MAX]);

/*
 * networks_is_own() - does @to lead back to this host, by the kernel's routes?
 * Remembers the answer for ten seconds: three system calls, 9 us, serve several connections. False if netlink is forbidden.
 */
bool networks_is_own(const union sockaddr_ip *to);

/*
 * networks_may_be_several() - may a connection of @fd to @to get a second path? more_paths.c
 * @fd: an MPTCP socket that isn't connected
 * Takes some twenty system calls. True if we can't know that: netlink or /proc is forbidden, or a program or the peer may add paths.
 */
bool networks_may_be_several(int fd, const union sockaddr_ip *to);

/*
 * host_preferences() - return CONVERT_PATHS, followed by the devices that the service's rules exclude
 * It asks the kernel at most once a second. Works in hooks, with signals blocked. The result stays valid for the present step.
 */
const struct path_preferences *host_preferences(const struct settings *settings);

/* How further subflows of a connection could break the user's policy for a network: more_paths.c. */
enum policy_breach {
	BREACH_NONE,
	BREACH_ENDPOINT,  /* an endpoint is on a network with =never */
	BREACH_NO_BACKUP, /* an endpoint is on a network with =backup, and lacks the kernel's flag "backup" */
	BREACH_SERVICE,   /* the path service keeps an endpoint on such a network, and makes it again at any time */
	BREACH_ABSENT,    /* such a network isn't ready now, and may get an endpoint once it is */
	BREACH_ANNOUNCED, /* the kernel connects to addresses that the converter announces, over any network */
	BREACH_MANAGER,   /* a program in user space manages paths */
	BREACH_UNKNOWN,   /* the kernel doesn't tell the endpoints, or who manages them */
	BREACH_COUNT
};

/*
 * networks_policy_breach() - would a Multipath TCP connection to @to carry bytes over a network that the user's policy excludes?
 * If so, a connection over plain TCP obeys the policy. Without =never and =backup this takes no system call; else some thirty, one to six
 * for each address, and three for each endpoint.
 */
enum policy_breach networks_policy_breach(const struct network_policy *policy, const union sockaddr_ip *to);

/* Returns the reason, which completes "over TCP, since ". */
const char *policy_breach_text(enum policy_breach breach);

/*
 * network_bind() - bind @fd, which isn't connected, to the network of @source, for its next SYN
 * @source: ::: the kernel chooses; @device: 0 if binding to the address is enough
 * Doesn't reserve a port. Returns true if the kernel agrees. Without CAP_NET_RAW it doesn't if @fd is bound to another device than @device.
 */
bool network_bind(int fd, const struct in6_addr *source, int device);

/* network_needs_socket() - is @fd bound to another device than @device? Then a process without CAP_NET_RAW needs another socket. */
bool network_needs_socket(int fd, int device);

/*
 * network_usual_source() - find the source address that the routes give to packets to @to, IPv4 as v4-mapped; works without netlink
 * @device: index of the interface that the socket would be bound to; 0: none. Sends nothing. Returns false if no route leads there.
 */
bool network_usual_source(const union sockaddr_ip *to, int device, struct in6_addr *source);

/* Does a connection to @to, unless bound, leave by a network with =never? Works without netlink. Also false if it can't know. */
bool network_usual_is_never(const struct path_preferences *wanted, const union sockaddr_ip *to);

/* Returns the address that @fd is bound to, IPv4 as v4-mapped; ::: none. */
struct in6_addr network_source(int fd);

/* Has the application, or an earlier owner of the socket, chosen the way of its packets by a device or a mark? True if we can't know. */
bool network_is_chosen(int fd);

#endif
