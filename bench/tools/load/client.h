/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - makes connections and requests, so many at a time, and measures them */
#ifndef LOAD_CLIENT_H
#define LOAD_CLIENT_H

#include "payload.h"
#include "way.h"

#define CLIENT_EARLY_MAX 512 /* bytes of an early request: it has to fit into a SYN */

struct client_options {
	union sockaddr_ip to;   /* where connections go: a proxy, or the server */
	union sockaddr_ip from; /* bound to; AF_UNSPEC: as the kernel chooses */
	struct way way;
	bool mptcp;
	bool no_delay; /* TCP_NODELAY is set */
	bool early;  /* the request follows the last step without waiting for its reply */
	bool withheld; /* the SYN+ACK of this converter may be the server's confirmation, as it */
		       /* withholds SYNs: doc/private-tlvs.md */
	bool verify; /* ends with 1 at the first wrong byte */
	bool hold; /* connections stay open behind their response, until the standard input ends */
	unsigned int concurrency;
	uint64_t connections;  /* so many in all; 0: until the time is over */
	int64_t over_ns;       /* opened evenly within this time, a slot each; 0: concurrency decides */
	unsigned int requests; /* on each connection */
	struct payload_request payload;
	int64_t warmup_ns;   /* before anything is counted */
	int64_t duration_ns; /* behind that; 0: until all connections were made */
	int64_t timeline_ns; /* bytes received for each such interval; 0: not wanted */
};

/*
 * client_run() - runs the load, and prints the results as a JSON object
 * Returns the exit status: 0 even if connections failed, which is part of the result; 1 if nothing
 * happened for long.
 */
int client_run(const struct client_options *options);

#endif
