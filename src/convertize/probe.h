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
	bool tcp;                   /* plain TCP, even where there is Multipath TCP */
	bool in_syn;                /* try to put the request into the SYN */
	bool connect_only;          /* send nothing and wait for nothing once it is connected */
	struct convert_span cookie; /* empty: none */
	size_t padding;             /* bytes behind the request, in the SYN as far as they fit */
	bool echo;                  /* they are to come back: an Echo TLV, doc/private-tlvs.md */
	unsigned int subflows;      /* with it: half of them waits for so many subflows besides the first */
	unsigned int segment;       /* neither side's segments shall be larger; 0: as they are */
	int timeout_ms;             /* for the handshake, and for the answer */
	int stall_ms;               /* with padding: for so long nothing of it may move */
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
	size_t syn_bytes;           /* so much data the SYN had */
	bool syn_again;             /* it was another SYN that got the answer */
	enum probe_mptcp mptcp;
	unsigned int subflows;      /* besides the first, the most that were seen */
	unsigned int mtu;           /* bytes of the largest packets that both sides would send */
	union sockaddr_ip local;    /* the connection's own address */
	double round_trip_ms;       /* from the SYN to the SYN+ACK */
	double answer_ms;           /* from the SYN to the end of the answer */
	size_t acknowledged;        /* bytes of the request and its padding that have arrived there */
	size_t returned;            /* bytes of the padding that have come back */
	double transfer_ms;         /* from the SYN+ACK until all of that had come */
	uint8_t message[CONVERT_MESSAGE_MAX]; /* what came, whatever it was */
	size_t message_len;
	struct convert_response response; /* points into the message of the result that was filled: */
					  /* see probe_copy() */
};

/* probe_run() - make the connection and wait for the answer, at most until the time is up */
void probe_run(const struct probe_request *request, struct probe_result *out);

/* probe_run_all() - all of them at once */
void probe_run_all(const struct probe_request *requests, struct probe_result *out, size_t count);

/* A result whose response points into its own message. */
void probe_copy(struct probe_result *to, const struct probe_result *from);

/* Has the peer's host answered at all? */
bool probe_is_connected(const struct probe_result *result);

#endif
