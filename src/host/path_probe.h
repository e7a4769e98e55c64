/* SPDX-License-Identifier: BSD-3-Clause */
/* path_probe.h - tests whether a path works, by a separate connection: the one prober of library, supervisor and path service */
#ifndef HOST_PATH_PROBE_H
#define HOST_PATH_PROBE_H

#include "client/paths.h"
#include "convert/convert.h"

#define PATH_PROBE_REQUEST_MAX (CONVERT_HEADER_LEN + 4) /* bytes of a message with an Info TLV alone, Section 6.2.3 */

/* Writes a message that a converter answers at once, without any server. Returns its length in bytes, or 0 if that fails. */
size_t path_probe_request(uint8_t request[static PATH_PROBE_REQUEST_MAX]);

/* A connection with an Info TLV in its SYN, or without data, up to the first answer. */
struct path_probe {
	int fd;           /* -1: the probe is over */
	uint64_t cookie;  /* its SO_COOKIE, since an application may close descriptors that it didn't open */
	int64_t sent;     /* CLOCK_MONOTONIC in ns, just after the SYN; 0: we sent none */
	unsigned int ms;  /* time until the answer, once it is there */
	bool answered;    /* by a SYN+ACK */
	bool taken;       /* the SYN+ACK acknowledges the data */
	bool refused;     /* by a reset: the network works, but there is no converter, or no longer; @whole: or by other bytes */
	bool whole;       /* only a Convert response counts as an answer: the path is in the state CACHE_PATH_REFUSES */
};

/*
 * path_probe_send() - send the SYN
 * @plain: send no data. The descriptor has a high number, is closed on exec(), and stays open until path_probe_look() sees the
 * answer, or until path_probe_close(). Returns false, with nothing sent, if the kernel refuses.
 */
bool path_probe_send(struct path_probe *probe, const struct path *path, bool plain);

/*
 * path_probe_send_to() - likewise, to any address
 * @source: IPv4 as v4-mapped; ::: the kernel chooses; @device: index of the interface to bind to; 0: none
 */
bool path_probe_send_to(struct path_probe *probe, const union sockaddr_ip *to, const struct in6_addr *source, int device, bool plain);

/* path_probe_mark() - give the packets of all later probes this mark (SO_MARK, needs CAP_NET_ADMIN); 0: none */
void path_probe_mark(uint32_t mark);

/* Looks for the answer. If it is there, notes it in @probe and closes the descriptor. Returns true if it was a SYN+ACK. */
bool path_probe_look(struct path_probe *probe);

void path_probe_close(struct path_probe *probe);

/*
 * path_probe_age() - return how long the probe has waited for its answer, in milliseconds
 * @now: clock_ns() from before path_probe_look(). A later time would be wrong: the caller may wait for a CPU in between, and the answer
 * may come meanwhile. Returns 0 for a SYN that was sent since.
 */
unsigned int path_probe_age(const struct path_probe *probe, int64_t now);

#endif
