/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - this host: what the kernel has of networks, and what they may be used for
 *
 * The model is filled by host_read(), and by unit tests as they like. The rules below read the model alone, and all ask them: the
 * library, the doctor, "convertize paths" and the service that manages paths. In the library's hooks, which have no room for lists, the
 * kernel is asked about one network after the other (networks.c), with the same rules.
 *
 * What is known of a route depends on what it is good for: default routes, routes to networks on the link, and the service's own are here
 * one by one; of the tables that have any other route only the numbers, so that no table is taken for the service's in which somebody
 * has something.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "common/sockaddr.h"
#include "host/endpoints.h"
#include "host/word.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the model --- */

#define HOST_V4_BITS 96 /* of an IPv4 prefix's length in struct prefix */

/* By this number routes and rules of the service are known, "proto" of ip-route(8). None of /etc/iproute2/rt_protos has it. */
#define HOST_PROTOCOL_OURS 88

#define HOST_KIND_MAX 16

struct host_link {
	unsigned int index;
	char name[IF_NAMESIZE];
	char kind[HOST_KIND_MAX]; /* "veth", "wireguard" …, as "ip -details link" has it; empty: a device of its own driver */
	bool loopback;
	bool point_to_point;
	bool up;                   /* by the administrator */
	bool carrier;              /* and by the medium: RFC 2863's "up", not "dormant" */
	unsigned int master;       /* the bridge, bond or VRF that it is a part of; 0: none */
	uint64_t received, sent;   /* bytes since the device was made */
};

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
	union sockaddr_ip gateway; /* AF_UNSPEC: none is needed */
	bool onlink;               /* the gateway is on the link, whatever the routes say */
	uint32_t metric;
};

/* "from ADDRESS lookup TABLE", for a whole address */
struct host_rule {
	union sockaddr_ip from;
	uint32_t table;
	uint32_t priority;
	uint8_t protocol;
};

/* The devices by which the kernel sends what goes anywhere, and what goes to the converter in question; 0: nowhere, or not asked. */
enum host_way_to { HOST_WAY_V4, HOST_WAY_V6, HOST_WAY_CONVERTER, HOST_WAY_COUNT };

enum host_metered {
	HOST_METERED_UNKNOWN,
	HOST_METERED_NO,
	HOST_METERED_YES,
	HOST_METERED_GUESSED_NO, /* by NetworkManager, from what the network has said or from its kind */
	HOST_METERED_GUESSED_YES,
};

/* What NetworkManager does about a device that it manages. */
struct host_nm_device {
	char name[IF_NAMESIZE];
	bool endpoints; /* it keeps them, since 1.40 and as connection.mptcp-flags says */
	bool disabled;  /* its user has said that this is no path: connection.mptcp-flags disabled */
	enum host_metered metered;
};

#define HOST_NM_DEVICES_MAX 64

/*
 * Who manages paths besides us. Two that keep the same endpoints take them from each other; neither NetworkManager nor mptcpd makes rules
 * and tables for connections that are bound to an address.
 */
struct host_managers {
	bool userspace; /* net.mptcp.pm_type is 1: the kernel's endpoints mean nothing to new connections */
	bool mptcpd;    /* it runs here */
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
	uint32_t *tables; /* that have routes or rules which aren't the service's; some may be there twice */
	size_t table_count;
	unsigned int ways[HOST_WAY_COUNT];
	struct endpoints endpoints;
	int endpoints_error; /* 0, or -errno: endpoints and limits aren't known */
	struct host_managers managers;
};

struct netlink;

/*
 * host_read() - ask the kernel for all of it, but for the managers
 * @netlink: NULL: a socket is opened for it; @converter: NULL: no way to one is asked for
 * @out is filled anew; host_fini() frees it. Returns 0, or -errno with nothing to free.
 */
int host_read(struct host *out, struct netlink *netlink, const union sockaddr_ip *converter);
void host_fini(struct host *host);

/* Looks for other managers. Where NetworkManager runs, nmcli(1) is asked, which takes some hundredths of a second. */
void host_managers_read(struct host_managers *out);

/*
 * host_nm_parse_devices() - the devices that NetworkManager has connected, from what nmcli says of all
 * @text: of "nmcli -t -f GENERAL.DEVICE,GENERAL.CON-UUID,GENERAL.METERED device show"; it is overwritten
 * @uuids: set to the connection of each device, in @text. For a device of *@out only its name and metered are set.
 */
void host_nm_parse_devices(struct host_managers *out, char *text, const char *uuids[static HOST_NM_DEVICES_MAX]);

/* Takes over what "nmcli -g connection.mptcp-flags connection show UUID" says; the empty text of an older one means no endpoints. */
void host_nm_parse_flags(struct host_nm_device *device, const char *text);

/* What NetworkManager does about the device; NULL: it doesn't manage it. */
const struct host_nm_device *host_nm_of(const struct host_managers *managers, const char *name);

/* Returns the link with this index; NULL: there is none. */
const struct host_link *host_link_of(const struct host *host, unsigned int index);

/* Returns the link that has the address, whatever the port; NULL: none has it. */
const struct host_link *host_home_of(const struct host *host, const union sockaddr_ip *address);

/* The endpoint of an address, be it bound to whichever device; NULL: there is none. */
const struct mptcp_endpoint *host_endpoint_of(const struct host *host, const union sockaddr_ip *address);

/* Does the route lead everywhere? */
bool host_route_is_default(const struct host_route *route);

/* Does it lead to half of everything at least? A VPN may have 0.0.0.0/1 and 128.0.0.0/1, so as to leave the default route alone. */
bool host_route_is_wide(const struct host_route *route);

/* The address without a port. Returns @buf. */
const char *host_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN]);

/* --- the rules --- */

enum host_verdict {
	HOST_USED,
	HOST_NEVER,      /* somebody's word */
	HOST_NOT_NAMED,  /* device names others */
	HOST_KIND,       /* of a kind that is left alone unless it is named */
	HOST_PART,       /* of a bridge, a bond or a VRF */
	HOST_DISABLED,   /* NetworkManager's user has said so */
	HOST_DOWN,
	HOST_NO_CARRIER, /* and another network has one */
	HOST_NOT_READY,  /* the address isn't known yet to be this host's alone, or is known not to be */
	HOST_DEPRECATED, /* the address is about to go, and has no endpoint */
	HOST_NO_ROUTE,
	HOST_SECOND,     /* another address of the same family and device is used */
	HOST_TWICE,      /* another device has the same address, and is used */
	HOST_VPN,        /* all traffic goes through a VPN */
	HOST_FULL,       /* MPTCP takes no more endpoints */
	HOST_VERDICT_COUNT
};

/* A verdict for programs: "used", "no-route" … */
const char *host_verdict_name(enum host_verdict verdict);

/* A verdict for people, as the end of a sentence that begins with "left alone:"; the remedy is in it where there is one. */
const char *host_verdict_text(enum host_verdict verdict);

/* Are devices of this kind ends of tunnels? */
bool host_kind_is_vpn(const char *kind);

/*
 * host_vpn_among() - the VPN that takes what is sent anywhere, or to the converter, by the ways that the kernel chooses
 * @links: those that the ways lead over are among them. NULL: there is none, or the word allows networks beside it.
 */
const struct host_link *host_vpn_among(const struct host_link *links, size_t count, const unsigned int ways[static HOST_WAY_COUNT],
				       const struct host_word *word);

/*
 * host_vpn() - likewise, of a whole host
 * And the one that takes all traffic of some users or marks, which has its routes in a table of its own.
 */
const struct host_link *host_vpn(const struct host *host, const struct host_word *word);

/* May connections take the network of the device @index, where @usual is the one that the kernel chooses for them? */
bool host_may_leave(const struct host_link *vpn, unsigned int index, unsigned int usual);

/* Who keeps an endpoint, or would. */
enum host_keeper { HOST_KEEPER_OURS, HOST_KEEPER_OTHER, HOST_KEEPER_NM, HOST_KEEPER_MPTCPD, HOST_KEEPER_COUNT };

/* An address of a device, and what may be done with it. */
struct host_network {
	union sockaddr_ip address;
	struct host_link link;
	enum host_verdict verdict;
	bool has_route;            /* there is a default route over the device; what follows is of it */
	union sockaddr_ip gateway; /* AF_UNSPEC: none is needed */
	bool onlink;               /* the gateway is there though no route says so */
	uint32_t metric;           /* of the default route that the gateway is of */
	bool backup;               /* for what would fail otherwise */
	enum host_keeper keeper;
	/* The rest is the service's (wanted.c), and means something if host_network_is_routed(). */
	uint32_t table;            /* 0: none is free */
	bool table_is_ours;        /* otherwise somebody has a rule for the address */
};

#define HOST_ENDPOINTS_USED_MAX 8 /* MPTCP_PM_ADDR_MAX, include/net/mptcp.h: as many as every kernel takes; and of subflows, MPTCP_SUBFLOWS_MAX */

/*
 * host_networks_find() - judge all addresses of the host, but for those of the loopback and of a link alone
 * The same input has the same result. @out: allocated; the caller frees it. Returns how many there are, 0 without memory.
 */
size_t host_networks_find(struct host_network **out, const struct host *host, const struct host_word *word);

/* Is there to be a rule for its address? It stays without a carrier: what is sent from there is none of another network's. */
bool host_network_is_routed(const struct host_network *network);

#endif
