/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_result.h - what was seen of a connection to a converter, and what became of it */
#ifndef CONVERTIZE_PROBE_RESULT_H
#define CONVERTIZE_PROBE_RESULT_H

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
	uint8_t message[CONVERT_MESSAGE_MAX]; /* what came, whatever it was */
	size_t message_len;
	struct convert_response response; /* points into the message above: copy results by probe_copy() only */
};

/* CLOCK_MONOTONIC in milliseconds, as the times of a result are. */
static inline double probe_now_ms(void)
{
	return (double)clock_ns() / (double)CLOCK_NS_PER_MS;
}

/* Parses the bytes of the message that have come so far. PROBE_SILENT: they may still become an answer. */
enum probe_outcome probe_judge(struct probe_result *result);

/* Copies a result; the response of @to points into its own message. */
void probe_copy(struct probe_result *to, const struct probe_result *from);

/* Has the peer's host answered at all? */
bool probe_is_connected(const struct probe_result *result);

#endif
