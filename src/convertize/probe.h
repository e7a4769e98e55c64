/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - one connection to a converter that asks what it supports, and how it went */
#ifndef CONVERTIZE_PROBE_H
#define CONVERTIZE_PROBE_H

#include "common/sockaddr.h"
#include "convert/convert.h"

struct probe_request {
	union sockaddr_ip converter;
	union sockaddr_ip from;     /* AF_UNSPEC: whatever the kernel takes */
	const char *device;         /* NULL: likewise */
	bool in_syn;                /* try to put the request into the SYN */
	struct convert_span cookie; /* empty: none */
	int timeout_ms;
};

enum probe_outcome {
	PROBE_ANSWERED,    /* message and response are set */
	PROBE_LOCAL,       /* this host can't even try */
	PROBE_UNREACHABLE, /* the connection was refused, or an error came back */
	PROBE_NO_SYN_ACK,  /* nothing came back */
	PROBE_SILENT,      /* connected, and then nothing, or not all of an answer */
	PROBE_CLOSED,      /* connected, and the peer closed without an answer */
	PROBE_RESET,
	PROBE_NOT_CONVERT, /* it answered by something else */
	PROBE_OUTCOME_COUNT
};

enum probe_syn_data {
	PROBE_SYN_DATA_UNUSED, /* not asked for, or this kernel won't */
	PROBE_SYN_DATA_TAKEN,
	PROBE_SYN_DATA_REFUSED,
	PROBE_SYN_DATA_LOST, /* the SYN got no answer, another one without data did */
};

enum probe_mptcp {
	PROBE_MPTCP_UNUSED,   /* this kernel won't */
	PROBE_MPTCP_KEPT,
	PROBE_MPTCP_LOST,     /* offered, and not taken */
	PROBE_MPTCP_WITHHELD, /* not offered: the kernel has switched it off for a while */
};

struct probe_result {
	enum probe_outcome outcome;
	int error;                  /* positive errno of LOCAL and UNREACHABLE */
	enum convert_status status; /* of NOT_CONVERT */
	enum probe_syn_data syn_data;
	enum probe_mptcp mptcp;
	union sockaddr_ip local;    /* the connection's own address */
	double round_trip_ms;       /* from the SYN to the SYN+ACK */
	double answer_ms;           /* from the SYN to the end of the answer */
	uint8_t message[CONVERT_MESSAGE_MAX]; /* what came, whatever it was */
	size_t message_len;
	struct convert_response response; /* points into message */
};

/* probe_run() - make the connection and wait for the answer, at most until the time is up */
void probe_run(const struct probe_request *request, struct probe_result *out);

#endif
