/* SPDX-License-Identifier: BSD-3-Clause */
/* path_probe.h - asks a path whether it works, by a connection of its own */
#ifndef HOST_PATH_PROBE_H
#define HOST_PATH_PROBE_H

#include "client/paths.h"
#include "convert/convert.h"

#define PATH_PROBE_REQUEST_MAX (CONVERT_HEADER_LEN + 4) /* bytes of a message with an Info TLV alone, Section 6.2.3 */

/* Writes the message that a converter answers at once, whatever its servers do. Returns its length in bytes, or 0 where that fails. */
size_t path_probe_request(uint8_t request[static PATH_PROBE_REQUEST_MAX]);

/* A connection that carries an Info TLV in its SYN, or none: from its SYN to what shows the first thing that came back. */
struct path_probe {
	int fd;           /* -1: it is over */
	uint64_t cookie;  /* SO_COOKIE of it, since an application may close what it didn't open */
	int64_t sent;     /* CLOCK_MONOTONIC in ns, once the SYN was on its way; 0: nothing was tried */
	unsigned int ms;  /* that the answer took, once it is there */
	bool answered;    /* by a SYN+ACK */
	bool taken;       /* which acknowledges the data */
	bool refused;     /* by a reset: the network works, but no converter is there, or it is one no more */
};

/*
 * path_probe_send() - send the SYN
 * @plain: without data in it. The descriptor is closed on exec(), has a high number, and is kept until path_probe_look() has seen
 * the answer, or path_probe_close(). Returns false, with nothing sent, if the kernel refuses.
 */
bool path_probe_send(struct path_probe *probe, const struct path *path, bool plain);

/* Has the answer come? Notes it in @probe, and closes the descriptor then. Returns whether it was a SYN+ACK. */
bool path_probe_look(struct path_probe *probe);

void path_probe_close(struct path_probe *probe);

/*
 * path_probe_age() - how long the probe has had for its answer, in milliseconds
 * @now: clock_ns() from before path_probe_look(): who looks and reads the clock afterwards may have waited for a CPU in between, and the
 * answer may have come meanwhile. 0 for a SYN that was sent since.
 */
unsigned int path_probe_age(const struct path_probe *probe, int64_t now);

#endif
