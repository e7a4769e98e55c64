/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_probe.h - one connection to a converter that asks what it supports, and how it went */
#ifndef CONVERTIZE_CONVERTER_PROBE_H
#define CONVERTIZE_CONVERTER_PROBE_H

#include "common/clock.h"
#include "common/sockaddr.h"
#include "convert/convert.h"

enum probe_outcome {
	PROBE_ANSWERED,    /* message and response are set */
	PROBE_LOCAL,       /* this host can't even try */
	PROBE_UNREACHABLE, /* the connection was refused, or an error came back */
	PROBE_NO_SYN_ACK,  /* nothing came back */
	PROBE_SILENT,      /* connected, and then nothing, or not all of an answer */
	PROBE_CLOSED,      /* connected, and the peer closed without an answer */
	PROBE_RESET,       /* connected, and the peer reset the connection without an answer */
	PROBE_NOT_CONVERT, /* it answered by something else */
	PROBE_OUTCOME_COUNT
};

enum probe_syn_data {
	PROBE_SYN_DATA_UNUSED, /* not asked for, or this kernel won't */
	PROBE_SYN_DATA_TAKEN,   /* the SYN+ACK has acknowledged it */
	PROBE_SYN_DATA_REFUSED, /* the SYN+ACK has not acknowledged it */
	PROBE_SYN_DATA_LOST, /* the SYN got no answer, another one without data did */
};

enum probe_mptcp {
	PROBE_MPTCP_UNUSED,   /* this kernel won't */
	PROBE_MPTCP_KEPT,     /* the connection is one of Multipath TCP */
	PROBE_MPTCP_LOST,     /* offered, and not taken */
	PROBE_MPTCP_WITHHELD, /* not offered: the kernel has switched it off for a while */
};

struct probe_result {
	enum probe_outcome outcome;
	int error;                  /* positive errno of LOCAL and UNREACHABLE */
	enum convert_status status; /* of NOT_CONVERT */
	enum probe_syn_data syn_data;
	size_t syn_bytes;           /* bytes of data in the SYN */
	bool syn_again;             /* the SYN was sent again before an answer came */
	enum probe_mptcp mptcp;
	unsigned int subflows;      /* besides the first, the most that were seen */
	unsigned int mtu;           /* bytes of the largest packets that both sides would send */
	union sockaddr_ip local;    /* the connection's own address */
	double round_trip_ms;       /* from the SYN to the SYN+ACK */
	double answer_ms;           /* from the SYN to the end of the answer */
	size_t acknowledged;        /* bytes of the request and its padding that the peer has acknowledged */
	size_t returned;            /* bytes of the padding that have come back */
	double transfer_ms;         /* from the SYN+ACK until all of the padding had come back */
	uint8_t message[CONVERT_MESSAGE_MAX]; /* all that came */
	size_t message_len;
	struct convert_response response; /* points into the message above: copy results by probe_copy() only */
};

/* Copies a result; the response of @to points into its own message. */
void probe_copy(struct probe_result *to, const struct probe_result *from);

/* Has the peer's host answered at all? */
bool probe_is_connected(const struct probe_result *result);

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

/*
 * counters_read() - one counter of /proc/net/netstat, of this network namespace
 * @name: as nstat(8) spells it, such as "MPTcpExtBlackhole". 0 if this kernel doesn't count it.
 */
uint64_t counters_read(const char *name);

#endif
