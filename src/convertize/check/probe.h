/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - one connection to a converter that asks what it supports, and how it went */
#ifndef CONVERTIZE_PROBE_H
#define CONVERTIZE_PROBE_H

#include "convertize/check/probe_result.h"

struct probe_request {
	union sockaddr_ip converter;
	union sockaddr_ip from;     /* the source address; AF_UNSPEC: the kernel chooses it */
	const char *device;         /* that the socket is bound to; NULL: to none */
	bool tcp;                   /* plain TCP, even where there is Multipath TCP */
	bool in_syn;                /* try to put the request into the SYN */
	bool connect_only;          /* send nothing and wait for nothing once it is connected */
	struct convert_span cookie; /* empty: none */
	size_t padding;             /* bytes behind the request, in the SYN as far as they fit */
	bool echo;                  /* the padding is to come back: an Echo TLV, doc/private-tlvs.md */
	unsigned int subflows;      /* with echo: half of the padding waits for so many subflows besides the first */
	unsigned int segment;       /* maximum segment size of both sides, in bytes; 0: the kernel's */
	int timeout_ms;             /* for the handshake, and again for the answer */
	int stall_ms;               /* with echo: the transfer ends when nothing has moved for so long */
};

/* probe_run() - make the connection and wait for the answer, at most until the time is up */
void probe_run(const struct probe_request *request, struct probe_result *out);

/* probe_run_all() - run several probes at once */
void probe_run_all(const struct probe_request *requests, struct probe_result *out, size_t count);

#endif
