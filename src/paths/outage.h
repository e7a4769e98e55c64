/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outage.h - what the kernel tells of subflows, and which networks have fallen silent (no I/O)
 *
 * Three steps: what follows from the subflows at one look (subflow_facts.c), what each has done since the last one (flows.c), and what is to
 * be done about the networks that they go over (outage.c).
 */
#ifndef PATHS_OUTAGE_H
#define PATHS_OUTAGE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- at one look --- */

#define PATHS_SUBFLOWS_MAX 1024
#define PATHS_OUTAGES_MAX 8 /* networks with an endpoint of ours */

/* A subflow of a connection that this host has begun or accepted. */
struct paths_subflow {
	uint64_t cookie;         /* of the socket, no other one has it while the kernel runs */
	uint32_t token;          /* of the connection, this host's */
	union sockaddr_ip local; /* port 0 */
	union sockaddr_ip peer;  /* with its port */
	bool joined;             /* it has joined the connection, so that the peer has accepted that; otherwise the connection began here */
	bool established;        /* otherwise its SYN isn't answered yet */
	bool confirmed;          /* and the peer has acknowledged that it knows: RFC 8684, 3.2 */
	bool unanswered;         /* a retransmission time-out has expired, and what was sent isn't acknowledged */
	uint32_t rtt_ms;
	uint32_t heard_ms;       /* since anything has come from the peer */
	uint64_t received;       /* bytes */
	uint64_t mapped;         /* the place in the connection's stream up to which the peer has said that it sends here */
	bool incomplete;         /* not all of that stream is here up to that place */
	bool drained;            /* all that was sent here is acknowledged, as far as TCP is concerned, and nothing waits for being sent */
	uint64_t owed;           /* bytes that the connection has sent over any subflow, and that its peer as a whole hasn't acknowledged */
};

struct paths_subflows {
	struct paths_subflow list[PATHS_SUBFLOWS_MAX];
	size_t count;
	bool more; /* there are some besides: nothing may be concluded from what is missing */
};

/* Is the address one of these @count? */
bool paths_is_among(const union sockaddr_ip *address, const union sockaddr_ip *list, size_t count);

/* Is it one from this address? */
bool paths_subflow_is_from(const struct paths_subflow *subflow, const union sockaddr_ip *local);

/* Has nothing come from its peer for longer than a loss on a path that works explains? */
bool paths_subflow_is_quiet(const struct paths_subflow *subflow);

/* In how many milliseconds that is so unless something comes; 0: it is. */
uint32_t paths_subflow_quiet_in_ms(const struct paths_subflow *subflow);

/* Has a subflow over the network been heard of lately? */
bool paths_subflows_are_heard(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Has a connection an established subflow from an address that isn't among those to be without? */
bool paths_subflows_go_on(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *without, size_t count);

/* Is there an established subflow from the address? */
bool paths_subflows_are_open(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Does the SYN of a subflow from the address wait for its answer? */
bool paths_subflows_ask(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* The longest round trip, in milliseconds, of those from other addresses that have been heard of lately; -1: none has. */
int64_t paths_subflows_rtt_elsewhere_ms(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/*
 * Is a connection without any established subflow? An RM_ADDR would wait for its next one, and might end that, so its SYNs are left to
 * the kernel for as long as it sends them again each second.
 */
bool paths_subflows_are_stranded(const struct paths_subflows *subflows);

#define PATHS_STALLED_BYTES 65536 /* of less a last acknowledgement may have been lost */

/*
 * Does the connection wait for its peer, though none of its subflows does? The peer has dropped what TCP has acknowledged, since it was
 * beyond the connection's window: see doc/kernel-mptcp-outages.md.
 */
bool paths_subflows_are_stalled(const struct paths_subflows *subflows, uint32_t token);

/*
 * paths_needed_find() - without which of these addresses would a connection have no subflow left?
 * @addresses: those that are about to lose their subflows, the one that is to be kept rather first
 * @needed: set to whether each is needed; as few are as possible, in that order. Returns how many.
 */
size_t paths_needed_find(const struct paths_subflows *subflows, const union sockaddr_ip *addresses, size_t count, bool needed[]);

/* --- since the last one --- */

/* What is remembered of a subflow from one look to the next. */
struct paths_flow {
	uint64_t cookie;
	uint64_t received;
	uint64_t rate;    /* bytes a second, smoothed, as long as something came */
	uint64_t current; /* bytes a second since the last look */
	bool waits;       /* its connection waits for its peer, though no subflow does */
	bool stalled;     /* and did so at the last look */
	bool confirmed;   /* its peer knows that it is established */
	bool fresh;       /* which it didn't at the last look */
	bool may_return;  /* its connection has had a subflow that joined it: its peer takes such ones, and the paths let them pass */
};

struct paths_flows {
	struct paths_flow list[PATHS_SUBFLOWS_MAX]; /* in the order of the subflows of the last look */
	size_t count;
	int64_t looked; /* when that was, by CLOCK_MONOTONIC in nanoseconds */
};

/* Compares them with what they were at the last look, and notes what they are now. Those that have gone are forgotten. */
void paths_flows_note(struct paths_flows *flows, const struct paths_subflows *subflows, int64_t now);

/* What follows is about the subflows of which the flows were noted last. */

/* Did the subflow bring much, brings nothing any more, and another one of its connection brings much meanwhile? */
bool paths_flows_has_paused(const struct paths_flows *flows, const struct paths_subflows *subflows, size_t at);

/* Is a connection with an established subflow from the address stalled: paths_subflows_are_stalled(), since the look before? */
bool paths_flows_have_stalled(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Do the peers of new subflows from the address know, since this look, that they are established? */
bool paths_flows_are_fresh(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Would all connections with a subflow from the address get another one, as far as is known? One that they began with proves nothing. */
bool paths_flows_may_return(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* --- networks --- */

/* A network with an endpoint of ours. Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct paths_outage {
	union sockaddr_ip local;
	bool lasts;             /* it is silent */
	int64_t since, renewed; /* when it was found silent, and when its endpoint was last taken away */
	int64_t make_at;        /* when its endpoint, which was taken away, is to be made; 0: it is there */
	int64_t withdraw_at;    /* when its endpoint, which was announced, is to be taken away again; 0: it wasn't */
	int64_t trusted_until;  /* until then its pauses mean nothing: it was taken for silent, and wasn't */
	unsigned int mistakes;
	int64_t held;           /* since when it is silent, but kept; 0: it isn't */
	int64_t asked;          /* when a peer was asked last, while it is silent */
	int64_t answered;       /* when that had an answer; 0: not yet */
	int64_t hold_after;     /* until then it isn't held: it was, and had an answer at once */
	unsigned int holds;     /* how often that was so */
	int64_t join_at;        /* when a connection that has no subflow here is to be given one */
	unsigned int joins;     /* how often that was tried */
	bool gone;              /* its device is down, or its address away, and so it is with all the others */
	bool futile;            /* its endpoint was last taken away since a peer had answered, and that was no help */
	bool alone;             /* nothing was heard over any other when its endpoint was last taken away */
	int64_t prompt_until;   /* until then subflows that are new here are to send an acknowledgement */
};

/* An address whose endpoint is ours. */
struct paths_managed {
	union sockaddr_ip address;
	bool usable; /* otherwise its network is gone, or has no carrier, and the endpoint stays */
};

/* What is to be done to the endpoint of an address, or without touching it. */
struct paths_renewal {
	union sockaddr_ip local;
	bool take, make;
	bool last;              /* those of the others are to be taken before: what tells peers so goes over this one */
	bool announce;          /* after it was taken: make it such that the peer is told of the address, and no subflow is begun */
	bool prompt;            /* have its subflows send an acknowledgement, so that the peer sends what it has */
	bool ask;               /* send a SYN of plain TCP from there to @peer; paths_outages_answered() is told of an answer */
	union sockaddr_ip peer;
};

struct paths_outages {
	struct paths_outage list[PATHS_OUTAGES_MAX]; /* in the order of the addresses */
	size_t count;
	struct paths_flows flows;
	int64_t resent; /* when a subflow was last closed to have its connection send again; 0: never */
	union sockaddr_ip left[PATHS_OUTAGES_MAX]; /* addresses that subflows were from: peers may know such ones that have gone */
	size_t left_count;
};

/*
 * paths_outages_find() - compare subflows with what they were at the last look
 * @own: those whose endpoints may be made anew, the preferred one first; at most PATHS_OUTAGES_MAX count
 * @out: set to what is to be done to their endpoints now. Returns to how many.
 */
size_t paths_outages_find(struct paths_outages *outages, const struct paths_subflows *subflows,
			  const struct paths_managed *own, size_t count, int64_t now,
			  struct paths_renewal out[static PATHS_OUTAGES_MAX]);

/* Somebody was reached from an address that was to be asked. */
void paths_outages_answered(struct paths_outages *outages, const union sockaddr_ip *local, int64_t now);

/* How long until the next look, in milliseconds: longer where nothing goes on. */
int paths_outages_interval_ms(const struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now);

#endif
