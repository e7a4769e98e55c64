/* SPDX-License-Identifier: BSD-3-Clause */
/* lookup.h - asks the kernel for the route of a packet, devices, addresses, the service's rules, and MPTCP's endpoints; works in hooks */
#ifndef HOST_LOOKUP_H
#define HOST_LOOKUP_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks the path service's routes and rules: "proto" of ip-route(8). No name in /etc/iproute2/rt_protos has this number. */
#define HOST_PROTOCOL_OURS 88

/* --- routes: the kernel's own lookup, with all rules and tables (RTM_GETROUTE) --- */

/* The route of one packet. */
struct host_way {
	int error;                 /* 0, or the positive errno of a connect() */
	uint8_t type;              /* RTN_UNICAST, RTN_LOCAL … */
	unsigned int index;        /* of the device that the packet leaves by */
	uint32_t table;            /* that contains the route */
	union sockaddr_ip gateway; /* AF_UNSPEC: the destination is on the link, or the router has the other family (RFC 8950) */
	bool has_source;           /* this host has a source address for the destination */
	bool assumed; /* no route leads there: for a socket bound to a device Linux assumes that the destination is on the link */
};

/*
 * host_way_ask() - ask the kernel for the route to @to
 * @netlink: of nl_open(NETLINK_ROUTE); -1: open one for this question
 * @from: the source, IPv4 as v4-mapped; NULL or ::: the kernel chooses
 * @index: the device that the socket is bound to; 0: none
 * Works in hooks. Needs no privilege.
 */
void host_way_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *from, unsigned int index, struct host_way *out);

/* Does the route lead to another host over this device? */
bool host_way_leads(const struct host_way *way, unsigned int index);

/* Returns an address without a specific route: its route is the default one. We never send packets there. @family: AF_INET or AF_INET6 */
union sockaddr_ip host_way_anywhere(int family);

/* Three destinations: any IPv4 host, any IPv6 host, the converter. */
enum host_way_to { HOST_WAY_V4, HOST_WAY_V6, HOST_WAY_CONVERTER, HOST_WAY_COUNT };

/*
 * host_ways_ask() - ask for the device to each of these; 0: no route leads there
 * @netlink: as for host_way_ask(); @converter: NULL: none. Works in hooks.
 */
void host_ways_ask(int netlink, const union sockaddr_ip *converter, unsigned int ways[static HOST_WAY_COUNT]);

/* --- links --- */

#define HOST_KIND_MAX 16

struct host_link {
	unsigned int index;
	char name[IF_NAMESIZE];
	char kind[HOST_KIND_MAX]; /* "veth", "wireguard" …, as in "ip -details link"; empty: a device with a hardware driver */
	bool loopback;
	bool point_to_point;
	bool up;                   /* the administrator has set it up */
	bool carrier;              /* it is up and the medium works: RFC 2863's "up", not "dormant" */
	unsigned int master;       /* the bridge, bond or VRF to which it belongs; 0: none */
	uint64_t received, sent;   /* bytes since the kernel made the device */
};

/*
 * host_link_ask() - ask the kernel for a device's name, kind, master and carrier; the other members are 0
 * @netlink: of nl_open(NETLINK_ROUTE). Works in hooks. If there is none, only the index is set.
 */
struct host_link host_link_ask(int netlink, unsigned int index);

/* Asks any socket for a device's name, also while it lists something. Returns false, with an empty name, if there is no such device. */
bool host_device_name(int fd, unsigned int index, char name[static IF_NAMESIZE]);

/* --- addresses --- */

struct local_address {
	int device;              /* index of its interface */
	struct in6_addr address; /* IPv4 as v4-mapped */
	uint32_t flags;          /* IFA_F_… */
	uint8_t scope;           /* RT_SCOPE_… */
};

typedef void address_visitor(void *arg, const struct local_address *address);

/* Calls @visitor for each address of this host. @netlink: of nl_open(NETLINK_ROUTE); @family: AF_UNSPEC: both. Returns 0 or -errno. */
int addresses_visit(int netlink, int family, address_visitor *visitor, void *arg);

/* --- the path service's rules (host_model.h) --- */

struct service_rule {
	struct in6_addr from;     /* the service keeps an endpoint for this address, IPv4 as v4-mapped; ::: none */
	char device[IF_NAMESIZE]; /* or excludes devices of this name or pattern, by the priority; empty: none */
	uint32_t priority;
};

typedef void service_rule_visitor(void *arg, const struct service_rule *rule);

/*
 * service_rules_visit() - call @visitor for each rule that the path service has made
 * @netlink: of nl_open(NETLINK_ROUTE); @family: the rules for devices are AF_INET's. Returns 0 or -errno.
 */
int service_rules_visit(int netlink, int family, service_rule_visitor *visitor, void *arg);

/* --- endpoints, as ip-mptcp(8) shows them --- */

#define ENDPOINTS_MAX 64

struct mptcp_endpoint {
	union sockaddr_ip address; /* port 0: any */
	uint8_t id;
	unsigned int bound; /* index of the device that it is bound to; 0: none */
	uint32_t flags;     /* MPTCP_PM_ADDR_FLAG_… of linux/mptcp.h */
	bool is_ours;       /* the path service made it, by its memory: paths_memory_mark() */
};

struct mptcp_limits {
	unsigned int subflows; /* of a connection, besides its first */
	unsigned int accepted; /* addresses that a peer announces and to which the kernel opens subflows */
};

struct endpoints {
	struct mptcp_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	unsigned int subflow_limit;
};

/* Returns the number of the path manager's netlink family, or -errno: -ENOENT if there is none. @netlink: a socket of NETLINK_GENERIC */
int endpoints_family(int netlink);

typedef void endpoint_visitor(void *arg, const struct mptcp_endpoint *endpoint);

/*
 * endpoints_visit() - call @visitor for each endpoint, and read the limits
 * @limits: NULL: don't ask for them. Works in hooks, with signals blocked, since it opens a descriptor for a moment. Needs no
 * privilege. Returns 0 or -errno: -ENOENT if the kernel has no Multipath TCP.
 */
int endpoints_visit(endpoint_visitor *visitor, void *arg, struct mptcp_limits *limits);

/* endpoints_read() - read all endpoints; needs room that hooks don't have. Returns 0 or -errno. */
int endpoints_read(struct endpoints *out);

#endif
