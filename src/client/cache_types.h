/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_types.h - what the cache's records may have: the limits, and the verdicts with their values in the file */
#ifndef CLIENT_CACHE_TYPES_H
#define CLIENT_CACHE_TYPES_H

#include <stdint.h>

#define CACHE_FILE "libconvert-cache-2" /* in the directory; the number is the layout's */
#define CACHE_COOKIE_MAX 992            /* bytes that fit into a request beside a Connect TLV */
#define CACHE_KINDS_MAX 32              /* TCP option kinds of an answer to an Info TLV */
#define CACHE_LIFETIME_MAX (24 * 3600 * INT64_C(1000)) /* ms; no hint outlives this */

/* Does Multipath TCP get through to a converter? */
enum cache_mptcp {
	CACHE_MPTCP_UNKNOWN,
	CACHE_MPTCP_HOLDS, /* a connection was Multipath TCP at the end of its handshake */
	CACHE_MPTCP_LOST,  /* a connection fell back to TCP */
	CACHE_MPTCP_DOUBTED, /* one did where others had not, which may have been a lost packet's doing */
	CACHE_MPTCP_COUNT
};

/* How a path to a converter was last. */
enum cache_path {
	CACHE_PATH_UNKNOWN,
	CACHE_PATH_WORKS,
	CACHE_PATH_DATALESS, /* it works, but takes no data in SYNs */
	CACHE_PATH_LOSES,    /* of several SYNs some were answered */
	CACHE_PATH_SILENT,   /* none was */
	CACHE_PATH_COUNT
};

/* What is known of a server. */
enum cache_server_verdict {
	CACHE_SERVER_UNKNOWN,
	CACHE_SERVER_MPTCP,     /* it speaks MPTCP: it can be reached directly (Section 5.1) */
	CACHE_SERVER_NO_BYPASS, /* that was tried, and MPTCP or the connection failed */
	CACHE_SERVER_PLAIN,     /* it doesn't speak MPTCP */
	CACHE_SERVER_VERDICT_COUNT
};

#endif
