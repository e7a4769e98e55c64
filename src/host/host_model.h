/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_model.h - this host: a model of the kernel's networks, and the rules for their use
 *
 * host_read() fills the model from the kernel; unit tests fill it by hand. The rules below read only the model. The library, the doctor,
 * "convertize paths" and the path service all use them. The library's hooks have no room for lists: networks.c asks the kernel
 * about one network after the other, and applies the same rules.
 *
 * The model has the default routes, the routes to networks on a link, the service's own routes, and some that show a router. Of a table
 * with other routes it has only the number, so that the service doesn't take that table for its own.
 */
#ifndef HOST_MODEL_H
#define HOST_MODEL_H

#include "client/client_log.h"
#include "client/settings.h"
#include "common/sockaddr.h"
#include "host/lookup.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the policy for networks: never, backup, this one first: network_policy.c --- */

struct host_nm_device;

/* All settings for networks, from all sources. Zeroed: none. */
struct network_policy {
	const struct path_preferences *paths; /* CONVERT_PATHS, the user's; NULL: none */
	/* convertize.conf, the administrator's: names or patterns (fnmatch(3)), separated by commas; NULL: none */
	const char *device; /* use these devices, of any kind, and no others */
	const char *never;
	const char *backup;
	bool beside_vpn; /* use networks beside a VPN that takes all traffic: CONVERT_BESIDE_VPN */
	bool any_kind;   /* use devices of any kind (VPNs: if @beside_vpn): for programs; the path service wants separate networks */
};

/*
 * name_list_next() - take the next name or pattern from a list
 * @list: moved behind it; NULL: an empty list. Returns it, with its length in bytes; NULL at the end.
 */
const char *name_list_next(const char **list, size_t *len);

/* Is it a pattern for several names, and not the name of one device? */
bool name_is_pattern(const char *name);

/* Does a device's name match a pattern of the list? No if @list is NULL. */
bool name_list_has(const char *list, const char *name);

/*
 * network_policy_use() - find the setting for the network with this device and address
 * The strictest setting of all sources counts. @nm: NetworkManager's, NULL: none; its guess that a network is metered doesn't count, so
 * that it costs nobody a path. @preference: set to the place in CONVERT_PATHS, lower is better, or to PATH_PREFERENCE_NONE. Works in hooks.
 */
enum path_use network_policy_use(const struct network_policy *policy, const struct host_nm_device *nm, const char *device,
				 const struct in6_addr *address, uint8_t *preference);

/*
 * network_is_there() - does this machine have the device or address that an element of CONVERT_PATHS names?
 * Takes two or three system calls, and a descriptor for a moment. Returns true if it can't ask the kernel.
 */
bool network_is_there(const struct path_wish *wish);

/* Reports the networks that the user names and this machine lacks. They may come later, but a misspelt name never does. */
void networks_tell_missing(const struct path_preferences *wanted, client_log *say);

/* --- the model: host_read.c and managers.c fill it --- */

#define HOST_V4_BITS 96 /* of an IPv4 prefix's length in struct prefix */

struct host_address {
	unsigned int index;
	union sockaddr_ip address; /* port 0 */
	uint8_t scope;             /* RT_SCOPE_… */
	uint32_t flags;            /* IFA_F_… */
};

struct host_route {
	int family;
	uint32_t table;
	uint8_t protocol;
	struct prefix to;
	unsigned int index;
	union sockaddr_ip gateway; /* AF_UNSPEC: the route needs none; of IPv6 in a route of IPv4, too (RFC 8950) */
	bool onlink;               /* the gateway is on the link even if no route says so */
	uint32_t metric;
};

/* "from ADDRESS lookup TABLE", for all packets from an address; or the service's: in part (@shortest), or "oif DEVICE nop", to exclude a device */
struct host_rule {
	union sockaddr_ip from;   /* AF_UNSPEC: it excludes a device */
	uint32_t table;
	uint32_t priority;
	uint8_t protocol;
	uint8_t shortest;         /* length of the shortest prefix whose routes count, by suppress_prefixlength; 0: all count */
	char device[IF_NAMESIZE]; /* excluded: a name or pattern */
};

/*
 * The service tells each program of its network namespace which devices its endpoints exclude: by rules that do nothing, "oif NAME nop",
 * with these priorities and HOST_PROTOCOL_OURS. Any process may read them; only one that may make endpoints can forge them.
 */
#define HOST_POLICY_NEVER_PRIORITY 8804
#define HOST_POLICY_BACKUP_PRIORITY 8805

/*
 * Devices that programs must not use, or use only as a backup, for reasons that programs can't know: their quota is used up
 * (paths/traffic.h), or NetworkManager's user says that they are metered.
 */
#define HOST_PROGRAMS_NEVER_PRIORITY 8806
#define HOST_PROGRAMS_BACKUP_PRIORITY 8807

enum host_metered {
	HOST_METERED_UNKNOWN,
	HOST_METERED_NO,
	HOST_METERED_YES,
	HOST_METERED_GUESSED_NO, /* NetworkManager guesses from the network's announcement or kind */
	HOST_METERED_GUESSED_YES,
};

/* NetworkManager's settings for a device that it manages. */
struct host_nm_device {
	char name[IF_NAMESIZE];
	bool endpoints; /* it keeps endpoints, since 1.40, by connection.mptcp-flags */
	bool disabled;  /* its user forbids the device as a path: connection.mptcp-flags disabled */
	enum host_metered metered;
};

#define HOST_NM_DEVICES_MAX 64

/*
 * Other programs that manage paths. Two managers of the same endpoints would delete each other's. Neither NetworkManager nor mptcpd makes
 * rules and tables for connections that are bound to an address.
 */
struct host_managers {
	bool userspace; /* net.mptcp.pm_type is 1: new connections ignore the kernel's endpoints */
	bool mptcpd;    /* mptcpd runs here */
	struct host_nm_device nm[HOST_NM_DEVICES_MAX];
	size_t nm_count;
};

struct host {
	struct host_link *links;
	size_t link_count;
	struct host_address *addresses;
	size_t address_count;
	struct host_route *routes;
	size_t route_count;
	struct host_rule *rules;
	size_t rule_count;
	uint32_t *tables; /* tables with routes or rules that aren't the service's; with duplicates */
	size_t table_count;
	unsigned int ways[HOST_WAY_COUNT]; /* host_ways_ask() */
	struct endpoints endpoints;
	int endpoints_error; /* 0, or -errno: endpoints and limits are unknown */
	struct host_managers managers;
};

struct netlink;

/*
 * host_read() - fill the model from the kernel, except the managers
 * @netlink: NULL: open a socket
 * Sets no way to a converter. Overwrites @out; host_fini() frees it. Returns 0, or -errno with nothing to free.
 */
int host_read(struct host *out, struct netlink *netlink);

/* Fills in only the links of a zeroed host. @netlink: as above. Returns as host_read(). */
int host_links_read(struct host *out, struct netlink *netlink);
void host_fini(struct host *host);

/*
 * host_managers_read() - look for other managers; if NetworkManager runs, ask nmcli(1), which takes some hundredths of a second
 * @out: zeroed, or an earlier answer. Returns 0; or -errno if nmcli doesn't answer, with NetworkManager's earlier answer.
 * Without nmcli returns 0, and leaves NetworkManager's settings in @out as they are.
 */
int host_managers_read(struct host_managers *out);

/*
 * host_nm_parse_devices() - find the devices that NetworkManager has connected, in nmcli's list of all devices
 * @text: the output of "nmcli -t -f GENERAL.DEVICE,GENERAL.CON-UUID,GENERAL.METERED device show", which this overwrites
 * @uuids: set to each device's connection, a string in @text. Of each device in *@out sets only name and metered.
 */
void host_nm_parse_devices(struct host_managers *out, char *text, const char *uuids[static HOST_NM_DEVICES_MAX]);

/* Parses the output of "nmcli -g connection.mptcp-flags connection show UUID"; an older NetworkManager's is empty: no endpoints. */
void host_nm_parse_flags(struct host_nm_device *device, const char *text);

/* Returns NetworkManager's settings for the device; NULL: it doesn't manage it. */
const struct host_nm_device *host_nm_of(const struct host_managers *managers, const char *name);

/* Returns the link with this index; NULL: there is none. */
const struct host_link *host_link_of(const struct host *host, unsigned int index);

/* Returns the link that has the address, ignoring the port; NULL: none has it. */
const struct host_link *host_home_of(const struct host *host, const union sockaddr_ip *address);

/* Returns the endpoint of an address, bound to any device or none; NULL: there is none. */
const struct mptcp_endpoint *host_endpoint_of(const struct host *host, const union sockaddr_ip *address);

/* Is it a default route? */
bool host_route_is_default(const struct host_route *route);

/* Does the route cover at least half of all addresses? A VPN may use 0.0.0.0/1 and 128.0.0.0/1 to leave the default route unchanged. */
bool host_route_is_wide(const struct host_route *route);

/* Formats the address without its port. Returns @buf. */
const char *host_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN]);

/* --- the rules: judge.c; of one address, and of VPNs: network_policy.c --- */

enum host_verdict {
	HOST_USED,
	HOST_NEVER,      /* a user or administrator forbids it */
	HOST_NOT_NAMED,  /* the setting "device" names others */
	HOST_KIND,       /* of a kind that we don't use unless a setting names it */
	HOST_PART,       /* part of a bridge, a bond or a VRF */
	HOST_DISABLED,   /* NetworkManager's user forbids it */
	HOST_DOWN,
	HOST_NO_CARRIER, /* while another network has one */
	HOST_NOT_READY,  /* duplicate address detection is under way, or has failed */
	HOST_DEPRECATED, /* the address will go soon, and has no endpoint */
	HOST_NO_ROUTE,
	HOST_SECOND,     /* we use another address of the same family and device */
	HOST_TWICE,      /* we use another device with the same address */
	HOST_VPN,        /* all traffic goes through a VPN */
	HOST_FULL,       /* MPTCP takes no more endpoints */
	HOST_VERDICT_COUNT
};

/* Returns the verdict's name for programs: "used", "no-route" … */
const char *host_verdict_name(enum host_verdict verdict);

/* Returns the verdict's text for people, which completes "left alone:", with the remedy if there is one. */
const char *host_verdict_text(enum host_verdict verdict);

/* Can hosts beyond the link answer to the address? @scope: RT_SCOPE_… */
bool host_address_is_global(const struct in6_addr *address, uint8_t scope);

/*
 * host_address_judge() - may connections have this global address?
 * @flags: IFA_F_…; @has_endpoint: an MPTCP endpoint has the address, whoever keeps it
 * Returns HOST_USED, HOST_NOT_READY or HOST_DEPRECATED.
 */
enum host_verdict host_address_judge(uint32_t flags, bool has_endpoint);

/*
 * host_address_fitness() - rate an address among those of its family and device; connections use the fittest
 * @has_rule: the path service has a rule for the address, so that the endpoint is the service's
 * Returns at least 1; higher is better. In order: the address will last; another manager keeps an endpoint for it; it is temporary and
 * hides our identity (RFC 8981); the service uses it already, so that connections keep it. These functions work in hooks.
 */
unsigned int host_address_fitness(const struct in6_addr *address, uint32_t flags, bool has_endpoint, bool has_rule);

/* Are devices of this kind ends of VPN tunnels? */
bool host_kind_is_vpn(const char *kind);

/*
 * host_vpn_among() - find the VPN that takes all traffic, or the traffic to the converter, by the kernel's routes
 * @links: contains the devices of @ways. Returns NULL if there is none, or if @policy allows networks beside it.
 */
const struct host_link *host_vpn_among(const struct host_link *links, size_t count, const unsigned int ways[static HOST_WAY_COUNT],
				       const struct network_policy *policy);

/*
 * host_vpn() - likewise, in a whole host
 * Also finds a VPN that takes all traffic of some users or marks, and has its routes in a separate table.
 */
const struct host_link *host_vpn(const struct host *host, const struct network_policy *policy);

/* May connections use the network of the device @index beside @vpn? @usual: the device that the kernel chooses for them */
bool host_allows_beside_vpn(const struct host_link *vpn, unsigned int index, unsigned int usual);

/* The program that keeps an endpoint, or would. */
enum host_keeper { HOST_KEEPER_OURS, HOST_KEEPER_OTHER, HOST_KEEPER_NM, HOST_KEEPER_MPTCPD, HOST_KEEPER_COUNT };

/* An address of a device, and the verdict on its use. */
struct host_network {
	union sockaddr_ip address;
	struct host_link link;
	enum host_verdict verdict;
	bool has_route;            /* a default route leads over the device, with the following gateway and metric */
	union sockaddr_ip gateway; /* AF_UNSPEC: the route needs none */
	bool onlink;               /* the gateway is on the link even if no route says so */
	uint32_t metric;
	bool backup;               /* use it only if all others fail */
	enum host_keeper keeper;
	unsigned int fitness;      /* host_address_fitness() */
	/* The service (wanted.c) sets the rest, if host_network_is_routed(). */
	uint32_t table;            /* 0: none is free */
	bool table_is_ours;        /* otherwise somebody else has a rule for the address */
};

#define HOST_ENDPOINTS_USED_MAX 8 /* MPTCP_PM_ADDR_MAX, include/net/mptcp.h, in all kernels; also the limit of subflows */

/*
 * host_networks_find() - judge all addresses of the host except loopback and link-local ones
 * The same input gives the same result. @out: an array that the caller frees. Returns its length, 0 if memory runs out.
 */
size_t host_networks_find(struct host_network **out, const struct host *host, const struct network_policy *policy);

/* Does its address need a rule? It also does without a carrier: packets from there must not leave by another network. */
bool host_network_is_routed(const struct host_network *network);

/* --- missing routes: route_plan.c --- */

/*
 * A host with two providers has a rule for the address of each, "from ADDRESS lookup TABLE", and in that table a default route over its
 * network (ip-rule(8)). These are the missing parts; the route comes first.
 */
struct host_route_plan {
	bool add_route, add_rule;
	bool has_gateway; /* false with add_route: the gateway is unknown, or the route needs none */
	union sockaddr_ip gateway;
	uint32_t table;
};

/* Does the table have routes or rules that aren't the service's, or a route over another device than @index? 0: over any */
bool host_table_is_taken(const struct host *host, uint32_t table, unsigned int index);

/* Finds the missing parts for packets from @from, an address of @link. */
void host_route_plan(const struct host *host, const union sockaddr_ip *from, const struct host_link *link, struct host_route_plan *out);

/* Has the kernel asked for this neighbour, such as a router, on the link, by ARP or neighbour discovery, and got no answer so far? */
bool host_neighbour_is_silent(const union sockaddr_ip *address, unsigned int index);

/* Finds a router other than @router in the routes over the device @index. Returns false if there is none. */
bool host_other_router(const struct host *host, const union sockaddr_ip *router, unsigned int index, union sockaddr_ip *out);

#endif
