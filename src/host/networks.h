/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.h - the networks of this host that lead to an address, and how a socket is made to use one
 *
 * All of it works in hooks, with signals blocked, since descriptors are opened for a moment. Nothing needs a privilege.
 */
#ifndef HOST_NETWORKS_H
#define HOST_NETWORKS_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define NETWORKS_MAX 8

struct host_word;

struct network {
	struct in6_addr source; /* an address of this machine in it; IPv4 as v4-mapped */
	int device;             /* index of the interface */
	char name[IF_NAMESIZE]; /* of the interface */
	bool usual;             /* it is the one that the kernel chooses for a socket that isn't bound */
	bool bind_device;       /* its address alone doesn't lead there: the socket has to be bound to the interface as well */
	bool backup;            /* its address is an MPTCP endpoint with the flag "backup" */
};

/*
 * networks_to() - find the networks by which @to can be reached
 * One address of each interface with a route to @to, of the family of @to; the usual one first, and no other one where host_vpn_among()
 * finds a VPN. Asks the kernel by netlink, some ten system calls and three for each network. Returns how many there are in @out, 0 where
 * netlink is forbidden.
 */
size_t networks_to(const union sockaddr_ip *to, const struct host_word *word, struct network out[NETWORKS_MAX]);

/*
 * networks_is_own() - does @to lead back to this host, by the kernel's routes?
 * Remembered for ten seconds, so that three system calls, 9 us, are needed once for several connections. False where netlink is
 * forbidden.
 */
bool networks_is_own(const union sockaddr_ip *to);

/*
 * paths_may_be_several() - may a connection of @fd to @to get a path besides the one that it begins on?
 * @fd: an MPTCP socket that isn't connected
 * Some ten system calls. True wherever that isn't known: where netlink or /proc are forbidden, or a program manages the paths.
 */
bool paths_may_be_several(int fd, const union sockaddr_ip *to);

/*
 * network_bind() - have @fd, which isn't connected, use the network of @source from its next SYN on
 * @source: :: for whichever the kernel chooses; @device: 0 if the address alone leads there
 * Takes no port. A device can't be exchanged for another one without privilege. Returns whether the kernel has agreed.
 */
bool network_bind(int fd, const struct in6_addr *source, int device);

/* The address that @fd is bound to, IPv4 as v4-mapped; :: if it is bound to none. */
struct in6_addr network_source(int fd);

/* Has the application, or whoever had the socket before, chosen where its packets leave: by a device, or a mark for routes of its own? */
bool network_is_chosen(int fd);

#endif
