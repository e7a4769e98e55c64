/* SPDX-License-Identifier: BSD-3-Clause */
/* sources.h - chooses the address that servers see a client come from (RFC 8803 4.4; no I/O) */
#ifndef CONVERTD_SOURCES_H
#define CONVERTD_SOURCES_H

#include "common/problems.h"
#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>

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

struct route;

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

#endif
