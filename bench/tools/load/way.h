/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * way.h - the ways to a server: the messages between client and proxy in front of the application's stream
 *
 * A way is a number of steps; each sends bytes that are known beforehand and waits for a reply. A
 * direct connection, or one to a proxy that knows where to go, has none.
 */
#ifndef LOAD_WAY_H
#define LOAD_WAY_H

#include "common/sockaddr.h"
#include "convert/convert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WAY_STEPS_MAX 3

struct way_step {
	size_t size; /* bytes to send */
	uint8_t bytes[CONVERT_MESSAGE_MAX];
	/*
	 * Is this the reply? Returns how many bytes of @data it takes, 0 if more are needed, or
	 * -errno: what connect(2) would have said, EPROTO if it isn't a reply at all.
	 */
	ssize_t (*reply)(const uint8_t *data, size_t len, const union sockaddr_ip *server);
};

struct way {
	bool in_syn; /* the first step rides in the SYN */
	bool silent; /* it has a reply only where the SYN+ACK confirms nothing: doc/private-tlvs.md */
	int steps;
	union sockaddr_ip server;
	struct way_step step[WAY_STEPS_MAX];
};

/* The names that way_init() knows, separated by blanks. */
extern const char way_names[];

/*
 * way_init() - a way by its name
 * @user: "USER:PASSWORD" for socks5, NULL for none
 * @mptcp: the connection to the proxy is one of Multipath TCP, which silent requests tell
 * Returns 0, or -EINVAL: there is no such way, or it needs another @user or @server.
 */
int way_init(struct way *way, const char *name, const union sockaddr_ip *server, const char *user, bool mptcp);

#endif
