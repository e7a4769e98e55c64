/* SPDX-License-Identifier: BSD-3-Clause */
/* subflows.h - what the kernel tells of subflows, and what follows from it at a look (no I/O) */
#ifndef PATHS_SUBFLOWS_H
#define PATHS_SUBFLOWS_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATHS_SUBFLOWS_MAX 1024
#define PATHS_OUTAGES_MAX 8 /* networks with an endpoint of ours */

/* A subflow of a connection that this host has begun or accepted. */
struct paths_subflow {
	uint64_t cookie;         /* of the socket, no other one has it while the kernel runs */
	uint32_t token;          /* of the connection, this host's */
	union sockaddr_ip local; /* port 0 */
	union sockaddr_ip peer;  /* with its port */
	bool joined;             /* it has joined the connection, so that the peer has accepted that; otherwise the connection began here */
	bool established;        /* otherwise its SYN isn't answered yet */
	bool confirmed;          /* and the peer has acknowledged that it knows: RFC 8684, 3.2 */
	bool unanswered;         /* a retransmission time-out has expired, and what was sent isn't acknowledged */
	uint32_t rtt_ms;
	uint32_t heard_ms;       /* since anything has come from the peer */
	uint64_t received;       /* bytes */
	uint64_t mapped;         /* the place in the connection's stream up to which the peer has said that it sends here */
	bool incomplete;         /* not all of that stream is here up to that place */
	bool drained;            /* all that was sent here is acknowledged, as far as TCP is concerned, and nothing waits for being sent */
	uint64_t owed;           /* bytes that the connection has sent over any subflow, and that its peer as a whole hasn't acknowledged */
};

struct paths_subflows {
	struct paths_subflow list[PATHS_SUBFLOWS_MAX];
	size_t count;
	bool more; /* there are some besides: nothing may be concluded from what is missing */
};

/* Is the address one of these @count? */
bool paths_is_among(const union sockaddr_ip *address, const union sockaddr_ip *list, size_t count);

/* Is it one from this address? */
bool paths_subflow_is_from(const struct paths_subflow *subflow, const union sockaddr_ip *local);

/* Has nothing come from its peer for longer than a loss on a path that works explains? */
bool paths_subflow_is_quiet(const struct paths_subflow *subflow);

/* In how many milliseconds that is so unless something comes; 0: it is. */
uint32_t paths_subflow_quiet_in_ms(const struct paths_subflow *subflow);

/* Has a subflow over the network been heard of lately? */
bool paths_subflows_are_heard(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Has a connection an established subflow from an address that isn't among those to be without? */
bool paths_subflows_go_on(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *without, size_t count);

/* Is there an established subflow from the address? */
bool paths_subflows_are_open(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Does the SYN of a subflow from the address wait for its answer? */
bool paths_subflows_ask(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* The longest round trip, in milliseconds, of those from other addresses that have been heard of lately; -1: none has. */
int64_t paths_subflows_rtt_elsewhere_ms(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/*
 * Is a connection without any established subflow? An RM_ADDR would wait for its next one, and might end that, so its SYNs are left to
 * the kernel for as long as it sends them again each second.
 */
bool paths_subflows_are_stranded(const struct paths_subflows *subflows);

#define PATHS_STALLED_BYTES 65536 /* of less a last acknowledgement may have been lost */

/*
 * Does the connection wait for its peer, though none of its subflows does? The peer has dropped what TCP has acknowledged, since it was
 * beyond the connection's window: see doc/kernel-mptcp-outages.md.
 */
bool paths_subflows_are_stalled(const struct paths_subflows *subflows, uint32_t token);

/*
 * paths_needed_find() - without which of these addresses would a connection have no subflow left?
 * @addresses: those that are about to lose their subflows, the one that is to be kept rather first
 * @needed: set to whether each is needed; as few are as possible, in that order. Returns how many.
 */
size_t paths_needed_find(const struct paths_subflows *subflows, const union sockaddr_ip *addresses, size_t count, bool needed[]);

#endif
