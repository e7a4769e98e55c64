/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * downstream.h - connections to servers: where an address leads, from which address a client's connections come, and how
 *   they are opened and fail
 */
#ifndef CONVERTD_DOWNSTREAM_H
#define CONVERTD_DOWNSTREAM_H

#include "common/problems.h"
#include "common/sockaddr.h"
#include "convert/convert.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_info;

/* ----- asks the kernel where an address leads: route.c; each thread has a struct route of its own ----- */

/* Where an address leads, as seen from this host. */
enum route_kind {
	ROUTE_ELSEWHERE, /* to another host, or nowhere, as connect() will find out */
	ROUTE_OWN,       /* to this host */
	ROUTE_BROADCAST, /* to all hosts of a network of ours, or to a group */
	ROUTE_UNKNOWN,   /* the kernel couldn't say */
};

struct route;

/* Opens a netlink socket to ask with. Returns it, for route_destroy(), or NULL with errno set. */
struct route *route_create(void);

/* NULL is fine. */
void route_destroy(struct route *route);

/* Returns where packets to @address would go. @address: IPv6, or IPv4 as v4-mapped */
enum route_kind route_find(struct route *route, const struct in6_addr *address);

/*
 * route_gateway() - find the router by which @address is reached
 * @address, @gateway: IPv6, or IPv4 as v4-mapped
 * Returns false where there is none: @address is on a network of ours, or there is no route. A router of the
 * other family (RFC 8950) is not reported.
 */
bool route_gateway(struct route *route, const struct in6_addr *address, struct in6_addr *gateway);

/*
 * route_has_source() - tell whether this host has a source address for connections to @address
 * Returns false as well where there is no route.
 */
bool route_has_source(struct route *route, const struct in6_addr *address);

/* ----- chooses the source address of a client's connections to servers (RFC 8803 4.4): sources.c ----- */

#define SOURCES_MAX 64
#define SOURCES_KEY_LEN 16

/* Addresses of this host: all of a prefix, IPv4 as v4-mapped. */
struct source {
	struct prefix prefix;
	struct place place;
};

struct sources {
	struct source source[SOURCES_MAX];
	size_t count;
	bool preserve; /* connections come from the clients' own addresses, where the server's family is the same */
	struct place preserve_place;
	uint8_t key[SOURCES_KEY_LEN];
};

enum sources_choice {
	SOURCES_ANY,    /* no address is configured for the server's family: the kernel chooses */
	SOURCES_SHARED, /* an address of the set */
	SOURCES_ROUTED, /* an address of the set in an IPv6 prefix, which is this host's by a local route */
	SOURCES_CLIENT, /* the client's own address and port */
};

/*
 * sources_set_key() - set the key of the hash that assigns addresses to clients, which clients must not know
 * @secret: any text; the same text makes the same key
 */
void sources_set_key(struct sources *sources, const char *secret);

/*
 * sources_add() - add an address or prefix to the set
 * @text: "192.0.2.1", "192.0.2.16/28", "2001:db8::/64"
 * @place: where the settings name it, for messages
 * Returns false after adding the error to @problems.
 */
bool sources_add(struct sources *sources, const char *text, const struct place *place,
		 struct problems *problems);

/*
 * sources_choose() - choose the source address for a connection on behalf of @client to @server
 * @out: set to an address of the server's family, with port 0 unless it is the client's own;
 * with SOURCES_ANY, set to AF_UNSPEC
 */
enum sources_choice sources_choose(const struct sources *sources, const union sockaddr_ip *client,
				   const union sockaddr_ip *server, union sockaddr_ip *out);

/* Sets the first and the last address of a source. Returns the number of its addresses, SIZE_MAX at most. */
size_t source_range(const struct source *source, struct in6_addr *first, struct in6_addr *last);

/* ----- binds sockets to the source address that was chosen for a connection ----- */

/*
 * source_bind() - give a socket its source address, before connect()
 * @source, @choice: as sources_choose() has set them. If @source has a port, the socket gets it if it is free, and
 *   another one otherwise; without, connect() chooses one that is free towards its server.
 * @route: tells whether an address of SOURCES_ROUTED is still ours; may be NULL
 * Returns 0 or -errno: -EADDRNOTAVAIL where the address isn't ours.
 */
int source_bind(int fd, const union sockaddr_ip *source, enum sources_choice choice,
		struct route *route);

/* Checks that the addresses are this host's and may be used. Returns false after adding the errors to @problems. */
bool source_check(const struct sources *sources, struct problems *problems);

/* ----- opens the connection to the server, and reads why it failed or which options were negotiated: downstream.c ----- */

/* Room for what downstream_options() writes, in bytes. */
#define DOWNSTREAM_OPTIONS_MAX 64

/* The contents of an Error TLV (RFC 8803 6.2.8), and the origin of the error. */
struct downstream_error {
	enum convert_error_code code;
	uint8_t value;
	bool said_here; /* this host's own kernel has found the error, not a router on the way */
	bool ours;      /* only this converter can't connect: the client may succeed by itself */
};

/* The properties of the SYN to the server. */
struct downstream_plan {
	const union sockaddr_ip *server; /* AF_INET or AF_INET6 */
	union sockaddr_ip source;        /* the address and port that it comes from, set by sources_choose() */
	enum sources_choice choice;      /* as returned by sources_choose() */
	struct route *route;             /* tells whether an IPv6 prefix is still ours; may be NULL */
	bool mptcp;                      /* ask for Multipath TCP */
	bool proven;         /* the client has proved its address; if not, see downstream_repeat_syns() */
	bool data_follows;   /* there are bytes to send as soon as the server answers: the */
			     /* third ACK waits for them */
	const char *congestion; /* the congestion control; "": the system's default */
	int last_fd;         /* the highest descriptor that there can be, if it is to stay free for the client's */
			     /* connection: then the error is EMFILE, and no SYN is sent; 0: it may be used */
};

/*
 * downstream_connect() - begin to connect
 * Returns a non-blocking socket that the caller owns, or -errno if connecting has failed at once;
 * downstream_refusal() translates that into an Error TLV.
 */
int downstream_connect(const struct downstream_plan *plan);

/*
 * downstream_repeat_syns() - let the kernel repeat the SYN as usual, since the client has proved its address
 * Until then, the kernel repeats the SYN as seldom as possible, which is twice in 6.18: nobody must be able to
 * multiply SYNs by forging a client's address (RFC 8803 9.3).
 * @retries: repetitions of the SYN, as net.ipv4.tcp_syn_retries has them
 * MPTCP sockets lack the option (Linux 6.18): there, nothing changes.
 */
void downstream_repeat_syns(int fd, int retries);

/*
 * downstream_result() - tell whether the socket has connected
 * @info: set if 0 is returned
 * Returns 0 if it has connected, even if it was reset since; -EINPROGRESS; or the -errno with which it failed, which
 * the kernel reports only once.
 */
int downstream_result(int fd, struct tcp_info *info);

/*
 * downstream_refusal() - make the Error TLV for a connection that failed
 * @fd: the socket, whose error queue may hold the ICMP message; -1 if there is none
 * @error: -errno from one of the above, -ETIMEDOUT for the converter's own time-out
 */
struct downstream_error downstream_refusal(int fd, const union sockaddr_ip *server, int error);

/* Call it once connected: from then on ICMP messages don't end the connection (IP_RECVERR is switched off). */
void downstream_established(int fd, const union sockaddr_ip *server);

/*
 * downstream_options() - write the TCP options of the server's SYN+ACK in wire format
 * They are complete as far as the kernel tells (see downstream.c).
 * @info: as downstream_result() has set it
 * @mptcp: write MP_CAPABLE if the server took Multipath TCP
 * Returns the number of bytes written to @out.
 */
size_t downstream_options(int fd, const struct tcp_info *info, bool mptcp,
			  uint8_t out[static DOWNSTREAM_OPTIONS_MAX]);

/* ----- remembers servers that didn't take Multipath TCP, so that they aren't asked each time ----- */

/*
 * plain_servers_note() remembers that @server (address and port) didn't take Multipath TCP, and plain_servers_has() tells
 * whether it is remembered. Any thread may call both. A server may be forgotten at any time, and is after ten minutes.
 */
bool plain_servers_has(const union sockaddr_ip *server);
void plain_servers_note(const union sockaddr_ip *server);

#endif
