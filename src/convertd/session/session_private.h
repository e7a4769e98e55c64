/* SPDX-License-Identifier: BSD-3-Clause */
/* session_private.h - struct session, for the files of this room alone */
#ifndef CONVERTD_SESSION_PRIVATE_H
#define CONVERTD_SESSION_PRIVATE_H

#include "convertd/net/downstream.h"
#include "convertd/policy/outcome.h"
#include "convertd/observe/record.h"
#include "convertd/policy/session_state.h"
#include "convertd/relay/relay.h"
#include "convertd/relay/relay_memory.h"
#include "convertd/relay/relay_watch.h"
#include "convertd/session/session.h"

#include <stdbool.h>

struct tcp_info;

/* Seconds that a peer has to take the converter's last word before the socket is closed or reset. */
#define LINGER_SECONDS 5

/* How often RESETTING looks whether the bytes have arrived, and how many times. */
#define RESET_POLL_MS 50
#define RESET_POLLS (LINGER_SECONDS * 1000 / RESET_POLL_MS)

/* The struct event of its deadline stands behind the struct: its size is known at run time only (event_get_struct_event_size()). */
struct session {
	struct session *prev, *next;             /* pool->sessions */
	struct session *queue_prev, *queue_next; /* pool->hungry */
	struct session_pool *pool;
	struct limits_member member; /* what the limits count it as */
	struct withheld_syn *withheld; /* REQUEST: what was done for the SYN of the connection, or NULL */
	struct relay relay;
	int registration[RELAY_ENDS]; /* of the sockets with the poller, or POLLER_NONE */
	struct relay_watch watch;
	struct session *heavy_prev, *heavy_next; /* pool->heavy */
	struct relay_memory memory; /* what it held at the last look, while it is in pool->heavy */
	uint64_t memory_told;       /* bytes of it that the metrics know of */
	union sockaddr_ip client, server; /* the server's family is 0 until it is known */
	union sockaddr_ip source;         /* this host's address towards the server, for the log; family 0: not known */
	uint64_t id;
	uint64_t started_us;
	uint64_t request_us;  /* microseconds from started_us until the request was whole; 0: it isn't */
	uint64_t connect_us;  /* microseconds from then until the server had answered; 0: it hasn't */
	uint64_t prove_by_us; /* unproven: when the client must have completed its handshake; 0: the kernel ends */
			      /* the connection otherwise */
	const char *reason;   /* for the log: the outcome's text, or a constant that is more precise */
	uint8_t *request;     /* REQUEST: what has arrived, not yet complete */
	struct fastopen_cookie *fastopen; /* CONNECTING: the server's cookie as the client knows it, if the SYN to the */
					  /* server has a Fast Open option */
	uint16_t request_len; /* bytes of it */
	uint16_t answer_len;  /* bytes of the converter's answer, sent or not */
	uint8_t state;        /* enum session_state */
	bool queued;          /* in pool->hungry */
	bool heavy;           /* in pool->heavy */
	uint8_t rest;         /* CONNECTING: the enum session_timeout that follows its first part; 0: none does */
	uint8_t reset_polls;  /* RESETTING: how often the deadline has looked */
	uint8_t outcome;      /* enum outcome */
	uint8_t transport;    /* enum record_transport */
	uint8_t timeout;      /* enum session_timeout: what the deadline is for */
	uint8_t subflows, subflows_max; /* as session_look_transport() saw them */
	uint16_t reset_bytes; /* unproven, TCP: what an RST costs on the wire */
	int16_t error;        /* the code of the Error TLV that is its answer, or RECORD_NO_ERROR */
	uint32_t echo_left;   /* REFUSING: bytes of the client that may still come back to it */
	bool fresh;           /* the client's socket has had no event yet: the one that its registration raises is still */
			      /* to come, and says how the socket is then */
	bool syn_data;        /* data in the client's SYN was taken */
	bool timestamps;      /* the client's connection has them: with that, its SYN+ACK has confirmed the server */
	bool needs_mptcp;     /* silent: it is served as Multipath TCP or not at all */
	uint8_t fallback_looks; /* RELAY, needs_mptcp: how often its first packets were looked at for that */
	uint8_t voice;        /* enum judgement_voice: how the client hears what has become of its request */
	bool quiet;           /* its line in the log is of level debug, as one warning stands for many */
	bool unlogged;        /* set at the end: it has no line in the log */
	bool far;             /* the client was known to be far when its SYN was withheld */
	bool confirmed;       /* the client has completed its handshake: its address is real */
	bool unproven;        /* neither a handshake nor a cookie has shown yet that it is: session_proof.c */
	bool hurried;         /* the deadline is for the client's proof, and comes before that of the state */
	bool no_reset;        /* unproven, TCP: there is no room for an RST */
	bool must_prove;      /* REQUEST: the request is whole, and judged again once the client is proven */
	bool error_taken;     /* the limits have counted its Error TLV already */
	bool kept_alive;      /* downstream_keep_alive() was called */
	bool reached;         /* CONNECTING: the server had answered when the SYN was released */
	bool client_said;     /* CONNECTING: the client has sent something since its socket was looked at */
	bool established;     /* the upstream socket may be written */
	bool trusted;         /* downstream_confirm() was called for the server's socket */
	bool answered;        /* RELAY, REFUSING: the answer has been written, and in RELAY the client is confirmed */
	bool info;            /* the request had an Info TLV */
	bool mptcp;           /* the connection to the server asks for MPTCP */
};

#endif
