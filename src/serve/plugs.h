/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugs.h - a worker's context, and the parts that a daemon brings: settings, the judge of flows, its answers, and the dialler
 *
 * This folder knows no protocol. It asks the daemon's *judge* what a client wants, of a withheld SYN as of the bytes of a connection, and
 * its *dialler* to connect to the server. Workers call the plugs in their own threads; the functions must not block.
 *
 * A client is *silent* if its request is silent, and *blind* if its request is blind: then only a reset or an ICMP message reports an
 * error.
 */
#ifndef SERVE_PLUGS_H
#define SERVE_PLUGS_H

#include "common/sockaddr.h"
#include "daemon/limits.h"
#include "relay/relay.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct hold_table;
struct log_limit;
struct metrics;
struct poller;
struct serve_plugs;
struct syn_packet_flow;
struct tcp_info;

/* The settings of sessions and withheld SYNs, times in milliseconds. They never change; a reload makes new ones. */
struct serve_settings {
	unsigned number;     /* unique to these settings in this process: a grant by other settings is judged again */
	unsigned request_ms; /* for a whole request */
	unsigned connect_ms; /* for the server's answer */
	unsigned patience_ms; /* after which we ask the dialler which side failed, if connect_ms less hold_ms is longer */
	unsigned hold_ms;    /* for which we withhold a SYN at most, unless its client is blind */
	struct relay_watch_settings watch;
	unsigned log_rate;   /* lines a second in the log for each outcome; 0: no limit */
	unsigned synacks;    /* SYN+ACKs that the kernel sends for a SYN with data before it gives up */
	size_t pipes_max;    /* of all workers, besides one for each worker: relay.h */
	bool drop_foreign;   /* drop SYNs that ask for nothing */
	bool refuses_syns;   /* the netfilter rules refuse the SYNs that we mark for refusal */
};

/*
 * A worker's means to judge flows and to connect to their servers. Sessions and withheld SYNs use it. It belongs to the worker's thread;
 * objects in it that several threads share are safe for that.
 */
struct serve_context {
	struct event_base *base;
	struct poller *poller;           /* watches the sockets of clients and servers */
	bool single_worker;              /* there is no other worker */
	const struct serve_settings *settings; /* those in force; NULL before the first ones */
	const struct serve_plugs *plugs;
	struct limits *limits;           /* all workers' */
	struct hold_table *withheld;     /* withheld and released SYNs; all workers' */
	struct limits_owner owner;       /* of this worker's sessions and withheld SYNs */
	/* set by the daemon's start(): */
	struct metrics *metrics;         /* this worker's counters */
	struct log_limit *log_limits;    /* of lines about sessions, by outcome; all workers' */
	void *daemon;                    /* its own state */
};

/* ----- the judge ----- */

/* Where a request was found. */
enum judgement_place {
	JUDGEMENT_STREAM,   /* in the bytes that a connection has brought so far: more may follow, and we can answer */
	JUDGEMENT_SYN,      /* in a SYN that may be withheld: there is no connection yet on which we could answer */
	JUDGEMENT_WITHHELD, /* in a SYN that is withheld, and that earlier settings have granted */
};

/* The server that we granted to a SYN, by the settings of that number. */
struct judgement_grant {
	unsigned settings_number;
	union sockaddr_ip server;
	bool mptcp; /* towards the server */
	const struct judgement_grant *next; /* the next grant, to another SYN with the same addresses; or NULL */
};

struct judgement_client {
	struct in6_addr address; /* IPv4 as v4-mapped */
	bool proven;             /* its handshake has shown that it receives packets at its address */
};

struct judgement_case {
	enum judgement_place place;
	const uint8_t *bytes; /* all bytes that have arrived, the request first */
	size_t len;
	struct judgement_client client;
	const struct syn_packet_flow *flow;  /* SYN, WITHHELD: its addresses */
	const struct judgement_grant *grant; /* STREAM: the grants to withheld SYNs with its addresses; or NULL */
	/*
	 * STREAM: counted already. SYN: only its owner and kind are set; the judge calls limits_enter() if the SYN is to be withheld.
	 * WITHHELD: NULL, since it is counted already.
	 */
	struct limits_member *member;
	uint64_t now_ms; /* clock_now_ms() */
	bool mptcp;      /* the client's connection uses Multipath TCP, or its SYN asks for it */
	uint16_t urgent; /* SYN, WITHHELD: its urgent pointer, by which rules of netfilter may tell the judge something */
	unsigned in, out; /* SYN: indexes of the devices at which it arrived and by which it is to leave; 0: none yet */
	/*
	 * STREAM: the SYN+ACK has acknowledged the SYN's data and has timestamps, which says that the server was reached. The client sees
	 * the same, so both sides know whether a silent client has a response. SYN: unused, since this is still open.
	 */
	bool confirmed;
	bool syn_data; /* STREAM: the SYN+ACK has acknowledged the SYN's data */
};

/*
 * The judge's actions, and how the caller carries them out:
 *
 *     action           STREAM                                   SYN
 *     REQUEST_WAIT     reads on                                 passes the SYN on: it asks for nothing yet
 *     REQUEST_PROVE    judges again after the third ACK         passes it on: its connection is judged
 *     REQUEST_CONNECT  asks the server, or takes what was       asks the server and withholds the SYN if
 *                      done for the SYN (by_grant)              withhold says so, else passes it on
 *     REQUEST_ANSWER   answers, then closes                     passes it on: its connection is answered
 *     REQUEST_IGNORE   closes without an answer                 passes or drops it, as the operator says
 *     REQUEST_RESET    resets the connection                    passes it on: its connection is reset
 *
 * A silent request's SYN is refused, not passed on, where its session would be reset, or where a blind client is refused
 * (syn_decision.c).
 */
enum request_action {
	REQUEST_WAIT,
	REQUEST_CONNECT,
	REQUEST_ANSWER,
	REQUEST_IGNORE,
	REQUEST_RESET,
	REQUEST_PROVE,
	REQUEST_ACTION_COUNT
};

/* The verdict on a flow: the action, and the facts with which the caller carries it out. */
struct serve_verdict {
	enum request_action action;
	/*
	 * If a client wants silence and couldn't be told the result, this is JUDGEMENT_RESET, and the caller resets the connection with any
	 * action but WAIT.
	 */
	enum judgement_reply reply;
	const char *reason;       /* for the log, a constant; NULL for WAIT and CONNECT */
	size_t length;            /* bytes of the stream that the request takes */
	union sockaddr_ip server; /* CONNECT, and for the log with ANSWER; family 0: the request names none */
	bool mptcp;               /* CONNECT: the client wants Multipath TCP towards the server */
	bool responds;            /* CONNECT: the client gets a response in any case: its SYN+ACK needn't confirm the server */

	bool silent;      /* the request is silent; also with WAIT. The next ones are set only if it is whole: */
	bool blind;       /* the request is blind */
	bool needs_mptcp; /* it can't be served over TCP */
	uint64_t attempt; /* by which we recognize the request if it is made again, by a SYN from another port; 0: none */
	uint16_t repeat;  /* how often it was made before */
	unsigned hold_ms; /* how long we may withhold the SYN, in milliseconds; UINT_MAX: it doesn't say */

	const char *client; /* the client's name, for the log, which stays valid; NULL: it has none */
	bool proven;   /* the request proves the client's address */
	bool refused;  /* ANSWER: it is an error */
	bool demanded; /* ANSWER: refused only for want of a proof of the address */
	bool no_way_here; /* ANSWER: refused since this host has no way to the server; the client may have one */
	bool error_taken; /* ANSWER: limits_take_error() has counted this error already */
	enum outcome exceeded; /* ANSWER: the limit that is exceeded, or OUTCOME_NONE */
	uint32_t echo;    /* ANSWER: the most bytes behind the request that come back to the client */

	bool by_grant; /* CONNECT: an earlier grant to the SYN allows the request; the server was asked then */
	const struct judgement_grant *grant; /* by_grant: that grant */
	bool withhold; /* CONNECT, SYN: the member is counted among the withheld SYNs. A caller that doesn't withhold the SYN after all */
		       /* calls limits_leave(). */
};

/* The most bytes of the daemon's own words to a client. */
#define SERVE_ANSWER_MAX 1024

/* The daemon's own words to a client. */
struct serve_answer {
	const char *reason;   /* for the log, a constant */
	enum outcome outcome; /* of a session that ends with it */
	int error;            /* its code for the log, or RECORD_NO_ERROR */
	unsigned counter;     /* the enum metric that counts it if it is sent; 0: none */
	size_t len;           /* bytes; 0: there is nothing to say */
	uint8_t bytes[SERVE_ANSWER_MAX];
};

/* Why a client's server wasn't reached. */
struct serve_refusal {
	enum {
		SERVE_FAULT_SERVER, /* the server, or the way to it */
		SERVE_FAULT_OURS,   /* only this host can't connect: the client may succeed by itself */
		SERVE_FAULT_ROOM,   /* a limit */
	} fault;
	uint8_t code, value; /* the daemon's own, for its answer */
	bool passes;         /* a withheld SYN goes on as it came, without us: a gateway's is routed. Else: */
	uint8_t native;      /* how the network refuses it, if its client is blind (syn_packet.h) */
	const char *reason;  /* for the log, a constant; NULL: that of the answer */
};

/* ----- the dialler ----- */

/*
 * A connection to a server that is being made. It begins for a withheld SYN or for a session. By assignment it moves from the SYN to its
 * session, perhaps another worker's.
 */
struct serve_dial {
	int fd;           /* its socket, whose events the owner watches; each step may replace it; -1: none */
	unsigned sockets; /* changes with each replacement: @fd alone doesn't show one, since its number may come back */
	bool writable;    /* the latest event of the socket was EPOLLOUT without an error: it is connected */
	bool mptcp;       /* the socket asks for Multipath TCP */
	uint64_t wake_ms; /* when step() is due without an event, as clock_now_ms(); 0: never */
	void *state;      /* the dialler's own; NULL: it needs none */
};

static inline bool serve_dial_same_socket(const struct serve_dial *before, const struct serve_dial *now)
{
	return before->fd == now->fd && before->sockets == now->sockets;
}

struct serve_plan {
	const union sockaddr_ip *client, *server;
	bool mptcp;        /* Multipath TCP is wanted */
	bool proven;       /* the client has proved its address; if not, proven() may follow */
	bool data_follows; /* there are bytes to send as soon as the server answers */
	bool spares_last;  /* leave the last free descriptor to the client's connection: fail with -EMFILE in its place */
};

struct serve_dialler {
	/* Begins to connect. Sets @dial, whose fd is -1 unless 0 is returned; or returns -errno. The owner calls stop() in any case. */
	int (*begin)(struct serve_context *context, const struct serve_plan *plan, struct serve_dial *dial);
	/*
	 * Goes on after an event of the socket, or at wake_ms. Once the server has answered, each call returns 0, with TCP_INFO in @info
	 * unless that is NULL. Otherwise returns -EINPROGRESS, or -errno if the connection has failed.
	 */
	int (*step)(struct serve_context *context, struct serve_dial *dial, struct tcp_info *info);
	/* Optional: the client has proved its address, or has repeated its request @repeat times: the server may be sent more SYNs. */
	void (*proven)(struct serve_context *context, struct serve_dial *dial, unsigned repeat);
	/* Optional: notes that a withheld SYN's server has answered. */
	void (*reached)(struct serve_context *context, const union sockaddr_ip *server);
	/* Hands the connected socket over to a session; the rest of @dial is freed. */
	void (*settle)(struct serve_context *context, struct serve_dial *dial, const union sockaddr_ip *server);
	/* Gives up: resets the connection, closes its socket, frees the rest of @dial. */
	void (*stop)(struct serve_context *context, struct serve_dial *dial);
	/*
	 * Returns why the server wasn't reached. @client_v4: the client's family, for the refusal by the network; @asked_ms: when the server
	 * was asked, as clock_now_ms(); @error: of begin() or step(), -ETIMEDOUT if the time is over
	 */
	struct serve_refusal (*refusal)(struct serve_context *context, const struct serve_dial *dial, const union sockaddr_ip *server,
					bool client_v4, uint64_t asked_ms, int error);
	/* Called if the server has been silent for serve_settings.patience_ms. Returns whether that is more likely this host's fault. */
	bool (*silence_is_ours)(struct serve_context *context, const union sockaddr_ip *server, uint64_t asked_ms);
};

/* ----- all plugs ----- */

struct serve_plugs {
	/* Judges a flow. @answer: set with REQUEST_ANSWER; NULL if nobody wants it */
	void (*judge)(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict,
		      struct serve_answer *answer);
	/* Writes the response to a client whose server has answered. @responds: of the verdict; @info: of step() */
	void (*connected)(struct serve_context *context, bool responds, const struct serve_dial *dial, const struct tcp_info *info,
			  struct serve_answer *answer);
	/* Writes the response to a client whose server can't be reached. */
	void (*refused)(struct serve_context *context, bool responds, const struct serve_refusal *refusal, struct serve_answer *answer);
	/* Optional: counts one client more that hasn't proved its address, or one fewer. */
	void (*unproven)(struct serve_context *context, bool more);
	/* Optional: a request was refused because this host lacks something. */
	void (*no_way_here)(struct serve_context *context, const union sockaddr_ip *server);
	/* Optional: a client was turned away, since all connections are taken. */
	void (*full)(struct serve_context *context);
	/*
	 * Returns whether another process resets this process's connections once this one has ended. NULL: none ever does, and if this
	 * process is killed, the kernel has to reset connections whose streams would seem whole.
	 */
	bool (*outlived)(void);
	struct serve_dialler dial;
	/*
	 * start() prepares a worker's context, and returns 0 or -errno. Optional: stop() undoes that, also after a failure; configure() is
	 * called before new settings come into force for this worker.
	 */
	int (*start)(struct serve_context *context, void *arg);
	void (*stop)(struct serve_context *context);
	void (*configure)(struct serve_context *context, const struct serve_settings *settings);
	void *arg;     /* of start() */
	bool no_request;  /* clients send no request: the addresses of a flow say all. SYNs without data are withheld, too */
};

#endif
