/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - "convertize check": can this machine, this network and this program do it?
 *
 * We ask and measure all paths to a converter before we report facts: a fault that all paths have is the converter's or this host's.
 */
#ifndef CONVERTIZE_CHECK_H
#define CONVERTIZE_CHECK_H

#include "client/cache.h"
#include "client/settings.h"
#include "convertize/check/converter_probe.h"
#include "convertize/check/report.h"
#include "convertize/options/command_line.h"
#include "host/host_model.h"
#include "host/lookup.h"

/* check() - examine this host, the program and the converters, and report facts on standard output; returns the exit status */
int check(const struct options *options);

/* Remedies of several faults. Each is an imperative. */
#define RESTART "on the converter, systemctl restart convertd"
#define OTHER_PORT "or use another port of the converter"
#define REMEDY_FIRST_NETWORK "connect this machine to a network"
#define REMEDY_ALLOW "allow one in --paths (CONVERT_PATHS), or in /etc/convertize.conf; convertize status shows quotas"
#define REMEDY_MPTCPD "see the configuration of mptcpd, which keeps it"
#define REMEDY_NAME "see that the name is right, and that DNS works here"
#define REMEDY_ADDRESS "see that the address is right, and that no firewall on the way rejects TCP to this port"
#define REMEDY_NO_CONVERTER "see that the address and the port are those of a converter"
#define REMEDY_PORTAL "log in to that network with a web browser, " OTHER_PORT
#define REMEDY_OWN_FIREWALL "have this machine's firewall let TCP to port %u out: nft list ruleset"
#define REMEDY_PORT "have the firewall let TCP to port %u through, " OTHER_PORT
#define REMEDY_ROUTER "see that %s is connected, and that this is its router"
#define REMEDY_SYN_DATA \
	"have the firewall that drops them let SYNs with data of any size through, " OTHER_PORT "; programs do without once they have " \
	"learned it"
#define REMEDY_SYN_BYTES "have the firewall that drops them let SYNs with data of any size through, " OTHER_PORT "%s"
#define REMEDY_OPTION_30 "ask the operator of the network to let TCP option 30 through, " OTHER_PORT "%s"

/* --- the addresses of converters (check_host.c) --- */

#define CHECK_ADDRESSES_MAX 32 /* as many as libconvert.so knows */

struct check_addresses {
	union sockaddr_ip list[CHECK_ADDRESSES_MAX]; /* in the order in which programs try them */
	const char *names[CHECK_ADDRESSES_MAX];      /* "" if the user gave the address */
	size_t count;
	struct check_unresolved {
		const char *name, *reason;
	} unresolved[SETTINGS_CONVERTERS_MAX]; /* names that have no address now */
	size_t unresolved_count;
};

/* Resolves the names of all converters, which may take seconds. None without settings->enabled. */
void check_addresses_find(struct check_addresses *out, const struct settings *settings);

/* Prints the names without an address on standard error. */
void check_addresses_warn(const struct check_addresses *addresses);

/* --- this host (check_host.c, check_networks.c) and its converters (check_converter.c): each function adds facts to @report --- */

void check_kernel(struct report *report);

/* This host as the doctor sees it. */
struct check_networks {
	struct host host;
	struct host_network *list;
	size_t count;
	int error; /* why there is no list: a positive errno; 0: there is one */
	const struct host_link *vpn; /* the VPN that takes all traffic, or the traffic to a converter; NULL: there is none */
	bool any_route;              /* some network has a default route */
	bool any_excluded;           /* the user excludes some */
	bool any_carrier[2], any_usable[2]; /* some with an IPv6 address ([1]: IPv4) has a carrier; connections may use some */
};

/*
 * check_networks_read() - read the networks from the kernel, and judge them by the settings of this user and of the administrator
 * @addresses: of the converters. Returns 0, or -errno: then the list is empty. check_networks_fini() frees @out.
 */
int check_networks_read(struct check_networks *out, const struct settings *settings, const struct check_addresses *addresses);
void check_networks_fini(struct check_networks *networks);
void check_networks_report(struct report *report, const struct check_networks *networks);

/* May connections use the network? If no network has a default route, all with an address count. */
bool check_network_is_usable(const struct check_networks *networks, const struct host_network *network);

/* Reports usable networks without the family by which connections go to the converter. */
void check_families(struct report *report, const struct check_networks *networks, bool is_v4);

/* Does a setting or a VPN forbid connections over the network? Then the doctor sends nothing there. */
bool check_network_is_refused(const struct host_network *network);

/*
 * check_keep_off() - find the network for connections to @to if they must not take the usual one (=never, a quota)
 * @out: set to NULL if they may take the usual one. Returns false, with NULL, if no network is left.
 */
bool check_keep_off(const struct check_networks *networks, const struct settings *settings, const union sockaddr_ip *to,
		    const struct host_network **out);

/* Returns the network that has this address, ignoring the port; NULL: none has it. */
const struct host_network *check_network_of(const struct check_networks *networks, const union sockaddr_ip *address);

/* Reports the networks that CONVERT_PATHS names and this host doesn't have, and whether connections keep off those that it excludes. */
void check_wishes(struct report *report, const struct settings *settings, const struct check_addresses *addresses);

/* @server: as check_server() takes it; NULL: none is tried */
void check_converters(struct report *report, const struct settings *settings, const struct check_networks *networks,
		      const struct check_addresses *addresses, const char *server);

/* Reports rules of CONVERT_BYPASS that exclude everything. */
void check_bypass(struct report *report, const struct settings *settings);

void check_cache(struct report *report, const struct settings *settings);

/* Notes a gateway that runs on this host: the connections that we make directly may be converted, too. */
void check_gateway(struct report *report);

/* Opens the cache that programs use (cache_find()), but makes neither directory nor file. */
int check_cache_open(struct cache *cache, const struct settings *settings, struct cache_place *place);

/* --- the paths to a converter, and our observations ------------------------------------- */

#define CHECK_PATHS_MAX 32

/* Does the path carry full segments? */
enum check_size {
	CHECK_SIZE_UNKNOWN, /* not asked */
	CHECK_SIZE_CARRIED,
	CHECK_SIZE_LOST_THERE, /* they don't arrive at the converter */
	CHECK_SIZE_LOST_BACK,  /* they don't arrive here */
};

/* A way from here to an address of a converter. */
struct check_path {
	const struct check_candidate *candidate;
	union sockaddr_ip from;               /* AF_UNSPEC: as the kernel chooses */
	const char *device;                   /* to which its sockets are bound; NULL: to none */
	const struct host_link *home;         /* the device by which its packets leave; NULL: unknown */
	bool endpoint;                        /* subflows use it */
	struct host_way way;                  /* of a subflow's packets, by the kernel's routes; not of the first path */
	struct probe_result probe;            /* of a request like a program's, or of the best rung (check_ask.c) */
	bool connected;                       /* the converter's host answers at least one kind of connection */
	enum probe_syn_data syn_data;
	size_t syn_passed;                    /* the most bytes of data in a SYN that got through; 0: none */
	size_t syn_lost;                      /* the fewest bytes that got lost in each try; 0: none */
	enum probe_mptcp mptcp;
	bool mptcp_dropped;  /* SYNs that offer MPTCP get no answer, others do */
	bool refused_here;   /* this machine's own firewall drops or rejects the SYNs */
	bool mptcp_lost_here; /* that firewall removes MPTCP, or drops SYNs with it */
	union sockaddr_ip icmp_from; /* the host that refuses the SYNs by ICMP; AF_UNSPEC: none does */
	bool icmp_forbids;   /* that host does so as a firewall, and not for a missing route */
	int icmp_error;      /* the errno of its message */
	bool unsteady;       /* some handshakes get through, and others don't */
	unsigned int lost_percent; /* of the transfer's segments; 0: hardly any */
	bool host_answers;   /* the port doesn't answer, but another port of the host does, over the same path */
	enum check_size size;
	bool both_ways;      /* the transfer measured the way back as well */
	unsigned int mtu;    /* size in bytes of the largest packets that get through; 0: not even the smallest do */
	size_t carried;      /* bytes of the transfer, each way */
	double transfer_ms;
};

/* The reason for a refusal: a second request, without the cookie, finds it out. */
enum check_cookie {
	CHECK_COOKIE_UNKNOWN,    /* it refuses without the cookie, too, or doesn't answer */
	CHECK_COOKIE_CLIENT,     /* the user has set no cookie: it refuses the client */
	CHECK_COOKIE_WRONG,      /* without the cookie it asks for one */
	CHECK_COOKIE_NOT_NEEDED, /* without the cookie it answers, or gives one */
};

/* One address of a converter. */
struct check_candidate {
	const struct check_converters *converters;
	union sockaddr_ip address;
	const char *name; /* "" if the user gave the address */
	char about[SOCKADDR_STRLEN + SETTINGS_NAME_MAX + 4]; /* "192.0.2.1:1234 (name)" */
	struct check_path first; /* the one that connections take */
	bool forbidden; /* connections may take none: we ask nothing */
	struct check_path paths[CHECK_PATHS_MAX]; /* the others, if the doctor examined them */
	size_t path_count;
	uint8_t cookie[CONVERT_TLV_VALUE_MAX];
	size_t cookie_len;
	bool cookie_learned; /* the converter asked for a cookie and gave this one */
	enum check_cookie refused;
};

struct check_converters {
	struct report *report;
	const struct settings *settings;
	const struct check_networks *networks;
	struct cache cache; /* facts that programs have learned */
	struct cache_place place;
	struct check_candidate candidates[CHECK_ADDRESSES_MAX];
	size_t count;
	bool any_serves; /* some address serves */
};

/* Add a fact about a candidate, or about a path to it, with a format and its arguments behind @name; see report_fact(). */
#define check_fact(candidate, status, name, ...) \
	report_fact((candidate)->converters->report, status, name, (candidate)->about, __VA_ARGS__)
#define path_fact(path, status, name, ...) check_fact((path)->candidate, status, name, __VA_ARGS__)

/* Returns the status of an address that doesn't serve: a warning if another one does. */
enum fact_status check_failure(const struct check_candidate *candidate);

/* --- check_unanswered.c ------------------------------------------------------------------ */

/* Reports the reason why no converter answers at this address. */
void check_report_unanswered(struct check_candidate *candidate);

/* Does a web server or TLS answer on the path, as captive portals do? */
bool check_path_has_portal(const struct check_path *path);

/* --- check_ask.c ---------------------------------------------------------------------- */

/* Returns a probe of this path, over Multipath TCP and without data in the SYN; the caller adds the rest. */
struct probe_request check_request(const struct check_path *path);

/* Asks the converter over a path, and determines the part of a request that doesn't get through. */
void check_ask(struct check_path *path);

/* Does the same over the first path. If the converter refuses, asks again with the cookie that it gave, or determines the reason. */
void check_ask_first(struct check_candidate *candidate);

/* Does this address serve? */
bool check_serves(const struct check_candidate *candidate);

/* Reports the features that the converter announces in its answer. */
void check_supported(const struct check_candidate *candidate);

/* --- check_measure.c -------------------------------------------------------------------- */

/* Makes a short transfer in each direction over a path on which the converter answers. */
void check_measure(struct check_path *path);

/* Reports whether one connection uses all paths that work alone, by a transfer over all of them at once. */
void check_measure_all(const struct check_candidate *candidate);

/* --- check_server.c --------------------------------------------------------------------- */

/* Tries the whole way to a server, "HOST" or "HOST:PORT" (443), through each converter that serves, and directly. */
void check_server(const struct check_converters *converters, const char *word);

/* --- check_paths.c ---------------------------------------------------------------------- */

/* Returns the device that has the address; NULL: none, or the loopback device, if the converter is on this machine. */
const struct host_link *check_home_of(const struct check_candidate *candidate, const union sockaddr_ip *address);

/* Asks the kernel for the route of the path's packets. */
void check_path_way(const struct check_path *path, struct host_way *out);

/* Returns the name of the path's device, or "this network". */
const char *check_path_name(const struct check_path *path);

/* Finds the other paths to a candidate that serves, asks it over each, and measures them. */
void check_paths_look(struct check_candidate *candidate);

/* For a candidate that doesn't answer over the first path: returns another path over which it answers, or NULL. */
const struct check_path *check_paths_elsewhere(struct check_candidate *candidate);

/* Adds the command that routes connections to the converter over this path. Returns false if there is none. */
bool check_paths_prefer(const struct check_path *path, struct fact *fact);

/* Reports the measurements of a path, which may be the first one. */
void check_paths_report_size(const struct check_path *path);

/* Does the converter refuse connections that begin on this path? Subflows may join all the same. */
bool check_path_is_refused(const struct check_path *path);

/* Reports on the other paths, and on all of them at once. */
void check_paths_report(const struct check_candidate *candidate);

#endif
