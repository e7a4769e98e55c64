/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_probe.h - makes one request to a converter, and describes the result */
#ifndef CONVERTIZE_CONVERTER_PROBE_H
#define CONVERTIZE_CONVERTER_PROBE_H

#include "common/clock.h"
#include "common/sockaddr.h"
#include "convert/convert.h"

enum probe_outcome {
	PROBE_ANSWERED,    /* message and response are set */
	PROBE_LOCAL,       /* this host has no socket for it, or can't bind it */
	PROBE_UNREACHABLE, /* connect() failed, for example without a route, or the connection was refused, or an ICMP error came back */
	PROBE_NO_SYN_ACK,  /* nothing came back */
	PROBE_SILENT,      /* connected, and then nothing, or not all of an answer */
	PROBE_CLOSED,      /* connected, and the peer closed without an answer */
	PROBE_RESET,       /* connected, and the peer reset the connection without an answer */
	PROBE_NOT_CONVERT, /* connected, and the answer was no Convert message */
	PROBE_OUTCOME_COUNT
};

enum probe_syn_data {
	PROBE_SYN_DATA_UNUSED, /* the caller didn't want it, this kernel doesn't support it, or no connection was made */
	PROBE_SYN_DATA_TAKEN,   /* the SYN+ACK has acknowledged it */
	PROBE_SYN_DATA_REFUSED, /* the SYN+ACK has not acknowledged it */
	PROBE_SYN_DATA_LOST, /* the SYN got no answer, a second one without data did */
};

enum probe_mptcp {
	PROBE_MPTCP_UNUSED,   /* the caller didn't want it, this kernel doesn't support it, or no connection was made */
	PROBE_MPTCP_KEPT,     /* the connection uses Multipath TCP */
	PROBE_MPTCP_LOST,     /* the SYN offered it, and the connection became TCP */
	PROBE_MPTCP_WITHHELD, /* the SYN didn't offer it: the kernel has switched it off for a while */
};

struct probe_result {
	enum probe_outcome outcome;
	int error;                  /* of LOCAL and UNREACHABLE: a positive errno */
	bool unsent;                /* in_syn: this host itself dropped the SYN, by its firewall */
	union sockaddr_ip icmp_from; /* tcp and UNREACHABLE: the host whose ICMP message refused the SYN; AF_UNSPEC: none did */
	bool icmp_forbids;          /* its message is that of a firewall, and not of a missing route */
	enum convert_status status; /* of NOT_CONVERT */
	enum probe_syn_data syn_data;
	size_t syn_bytes;           /* bytes of data in the SYN */
	bool syn_again;             /* Linux repeated the SYN before an answer came */
	enum probe_mptcp mptcp;
	unsigned int subflows;      /* the largest number seen, besides the first */
	unsigned int mtu;           /* size in bytes of the largest packets that both sides send */
	union sockaddr_ip local;    /* the connection's own address */
	double round_trip_ms;       /* from the SYN to the SYN+ACK */
	double answer_ms;           /* from the SYN to the end of the answer, or with echo of the transfer */
	size_t acknowledged;        /* bytes of the request and its padding that the peer acknowledged */
	size_t returned;            /* bytes of the padding that came back */
	double transfer_ms;         /* from the SYN+ACK to the end of the transfer, also if it stalled */
	unsigned int segments, lost; /* with echo, over TCP: segments with data that we sent, and the number that Linux sent again */
	uint8_t message[CONVERT_MESSAGE_MAX]; /* the bytes that came */
	size_t message_len;
	struct convert_response response; /* points into message: copy results by probe_copy() only */
};

/* Copies a result; the response of @to points into its own message. */
void probe_copy(struct probe_result *to, const struct probe_result *from);

/* Did the peer complete the handshake? */
bool probe_is_connected(const struct probe_result *result);

struct probe_request {
	union sockaddr_ip converter;
	union sockaddr_ip from;     /* the source address; AF_UNSPEC: the kernel chooses it */
	const char *device;         /* to bind the socket to; NULL: none */
	bool tcp;                   /* plain TCP, even where there is Multipath TCP */
	bool in_syn;                /* try to put the request into the SYN */
	bool connect_only;          /* stop after the handshake */
	union sockaddr_ip server;   /* ask for a connection to it, by a Connect TLV; AF_UNSPEC: ask for features, by an Info TLV */
	struct convert_span cookie; /* empty: none */
	size_t padding;             /* bytes after the request, in the SYN as far as they fit */
	bool echo;                  /* ask the converter to return the padding: an Echo TLV, doc/private-tlvs.md */
	unsigned int subflows;      /* with echo: half of the padding waits for this number of subflows besides the first */
	unsigned int segment;       /* maximum segment size of both sides, in bytes; 0: the kernel's */
	int timeout_ms;             /* for the handshake (2.9 s at most), and without echo again for the answer */
	int stall_ms;               /* with echo: the transfer ends after this time without progress */
};

/* probe_run() - make the connection, and wait for the answer within the time limits */
void probe_run(const struct probe_request *request, struct probe_result *out);

/* Returns the bytes of a packet's headers, without options. */
static inline unsigned int probe_headers(const union sockaddr_ip *address)
{
	return (sockaddr_ip_is_v4(address) ? 20 : 40) + 20;
}

/* probe_run_all() - run several probes at once */
void probe_run_all(const struct probe_request *requests, struct probe_result *out, size_t count);

/*
 * counters_read() - read a counter of /proc/net/netstat, of this network namespace
 * @name: as nstat(8) spells it, such as "MPTcpExtBlackhole". 0 if this kernel doesn't count it.
 */
uint64_t counters_read(const char *name);

#endif
