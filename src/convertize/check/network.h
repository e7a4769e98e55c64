/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - this host's addresses, and what the kernel's MPTCP path manager does with them */
#ifndef CONVERTIZE_NETWORK_H
#define CONVERTIZE_NETWORK_H

#include "common/sockaddr.h"

#include <net/if.h>

#define NETWORK_INTERFACES_MAX 64
#define NETWORK_ENDPOINTS_MAX 64

enum network_family { NETWORK_IPV4, NETWORK_IPV6, NETWORK_FAMILY_COUNT };

/* An interface that is up, has a global address and isn't the loopback. */
struct network_interface {
	char name[IF_NAMESIZE];
	unsigned int index;
	union sockaddr_ip address[NETWORK_FAMILY_COUNT]; /* the first; AF_UNSPEC: none */
	bool usable[NETWORK_FAMILY_COUNT]; /* has an address, and some routing table a default route
	                                      over it, unless no interface is like that */
};

/* An MPTCP endpoint, as ip-mptcp(8) shows them. */
struct network_endpoint {
	union sockaddr_ip address; /* its port is 0 unless it has one */
	uint8_t id;
	unsigned int bound;        /* to the device with this index; 0: to none */
	unsigned int home;         /* index of the interface that has the address; 0: none has */
	bool subflow;              /* used to open subflows: "subflow", perhaps "fullmesh" too */
	bool fullmesh_only;        /* used only for addresses that a converter announces */
};

struct network {
	struct network_interface interfaces[NETWORK_INTERFACES_MAX];
	size_t interface_count;
	struct network_endpoint endpoints[NETWORK_ENDPOINTS_MAX];
	size_t endpoint_count;
	unsigned int subflow_limit; /* subflows of a connection besides its first */
	int path_manager_error;     /* 0, or -errno: endpoints and the limit aren't known */
	unsigned int first[NETWORK_FAMILY_COUNT]; /* index of the interface that connections
	                                             take; 0: none is known */
};

/* network_read() - ask the kernel for all of it; returns 0, or -errno without addresses */
int network_read(struct network *out);

/* Formats the address alone, without its port. Returns @buf. */
const char *network_format_address(const union sockaddr_ip *address,
				   char buf[static SOCKADDR_STRLEN]);

/* Returns the place of an address among those of an interface, which is that of its family. */
enum network_family network_family(const union sockaddr_ip *address);

/* Returns the interface that has this address, whatever the port; NULL as network_interface() does. */
const struct network_interface *network_home(const struct network *network,
					     const union sockaddr_ip *address);

/* Returns the interface with this index; NULL if it isn't among network.interfaces. */
const struct network_interface *network_interface(const struct network *network,
						  unsigned int index);

#endif
