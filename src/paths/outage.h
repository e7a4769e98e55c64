/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outage.h - the kernel's facts about subflows, and the networks that have fallen silent (no I/O)
 *
 * The path manager looks at the subflows each second, or sooner while something happens. Two steps: facts of one look and changes since the
 * last one (flows.c), and the actions for silent networks (outage.c).
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

/* A subflow of a connection that this host began or accepted. */
struct paths_subflow {
	uint64_t cookie;         /* of the socket, unique while the kernel runs */
	uint32_t token;          /* of the connection, on this host */
	union sockaddr_ip local; /* port 0 */
	union sockaddr_ip peer;  /* with its port */
	bool joined;             /* it joins the connection, or has joined it; otherwise it is the connection's first */
	bool established;        /* otherwise its SYN has no answer yet */
	bool confirmed;          /* the peer knows that it is established, and has acknowledged that: RFC 8684, 3.2 */
	bool unanswered;         /* a retransmission time-out has expired, and the data is still unacknowledged */
	uint32_t rtt_ms;
	uint32_t heard_ms;       /* milliseconds since the last packet from the peer */
	uint64_t received;       /* bytes */
	uint64_t mapped;         /* the end of the peer's last mapping here, as a position in the connection's stream */
	bool incomplete;         /* bytes before that position are missing */
	bool drained;            /* TCP has acknowledged all data sent here, and none waits */
	uint64_t owed;           /* bytes that the connection has sent, and its peer hasn't acknowledged by Multipath TCP */
};

struct paths_subflows {
	struct paths_subflow list[PATHS_SUBFLOWS_MAX];
	size_t count;
	bool more; /* the kernel has more subflows than fit: a missing one proves nothing */
};

/* Does the list contain the address? */
bool paths_is_among(const union sockaddr_ip *address, const union sockaddr_ip *list, size_t count);

/* Has the peer been quiet for longer than a lost packet on a working path explains? */
bool paths_subflow_is_quiet(const struct paths_subflow *subflow);

/* Returns the milliseconds until it counts as quiet, unless a packet comes; 0: it is quiet. */
uint32_t paths_subflow_quiet_in_ms(const struct paths_subflow *subflow);

/* Does the connection have an established subflow from an address that isn't in @without? */
bool paths_subflows_go_on(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *without, size_t count);

/* Returns the longest round trip, in milliseconds, of subflows from other addresses that have heard of their peer lately; -1: none has. */
int64_t paths_subflows_rtt_elsewhere_ms(const struct paths_subflows *subflows, const union sockaddr_ip *local);

/*
 * Does a connection have no established subflow? An RM_ADDR would wait for its next one, and might end that. So we leave its SYNs to the
 * kernel while that repeats them each second.
 */
bool paths_subflows_are_stranded(const struct paths_subflows *subflows);

#define PATHS_STALLED_BYTES 65536 /* for fewer bytes a lost acknowledgement may be the reason */

/*
 * paths_needed_find() - find the addresses without which a connection would have no subflow left
 * @addresses: about to lose their subflows; the first to keep comes first
 * @needed: set for each address; as few as possible are true, the first ones rather. Returns their number.
 */
size_t paths_needed_find(const struct paths_subflows *subflows, const union sockaddr_ip *addresses, size_t count, bool needed[]);

/* --- since the last one --- */

/* A subflow's facts that we keep from one look to the next. */
struct paths_flow {
	uint64_t cookie;
	uint64_t received;
	uint64_t rate;    /* bytes a second, smoothed over the time in which bytes came */
	uint64_t current; /* bytes a second since the last look */
	bool waits;       /* its connection waits for its peer, though no subflow does */
	bool stalled;     /* waits, and did so at the last look */
	bool confirmed;   /* its peer knows that it is established */
	bool fresh;       /* confirmed since the last look */
	bool may_return;  /* its connection has had a joined subflow: the peer and the paths accept joins */
};

struct paths_flows {
	struct paths_flow list[PATHS_SUBFLOWS_MAX]; /* in the order of the subflows of the last look */
	size_t count;
	int64_t looked; /* time of that look, CLOCK_MONOTONIC in nanoseconds */
};

/* Compares the subflows with the last look, and notes the new facts. Forgets subflows that are gone. */
void paths_flows_note(struct paths_flows *flows, const struct paths_subflows *subflows, int64_t now);

/* The following functions take the @subflows of the last paths_flows_note(). */

/* Did the subflow carry much and now carries nothing, while another one of its connection carries much? */
bool paths_flows_has_paused(const struct paths_flows *flows, const struct paths_subflows *subflows, size_t at);

/* Facts about the subflows from one address: paths_signs_of() collects them. */
struct paths_signs {
	bool heard;      /* one has heard of its peer lately */
	bool open;       /* one is established */
	bool asks;       /* the SYN of one waits for its answer */
	bool stalled;    /* the connection of an established one is stalled, and was so at the last look */
	bool fresh;      /* the peer of a new one has learned since the last look that it is established */
	bool may_return; /* all their connections would probably get a new one: a joined subflow proves that, not the first one */
};

struct paths_signs paths_signs_of(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* --- networks --- */

/* A network with an endpoint of ours. Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct paths_network {
	union sockaddr_ip local;
	bool silent;
	int64_t since, renewed; /* since when it is silent, and when we last renewed its subflows */
	int64_t add_at;         /* when to add the deleted endpoint again; 0: it is there */
	int64_t withdraw_at;    /* when to delete the announced endpoint again; 0: we didn't announce it */
	int64_t trusted_until;  /* until then its pauses don't count: we took it for silent by mistake */
	unsigned int mistakes;  /* number of such mistakes in a row */
	int64_t kept_since;     /* since when it is silent, but its subflows stay; 0: it isn't kept */
	int64_t asked;          /* when we last asked a peer, while it is silent */
	int64_t answered;       /* when the peer answered; 0: not yet */
	int64_t keep_after;     /* until then we don't keep it: it answered at once after we did */
	unsigned int keep_mistakes; /* number of such mistakes */
	int64_t join_at;        /* when to give a subflow to connections that have none here */
	unsigned int joins;     /* number of such tries */
	bool gone;              /* its device is down or its address is gone, and its endpoint stays: paths_managed.usable is false */
	bool futile;            /* the last renewal followed a peer's answer */
	bool alone;             /* no other network was heard at the last renewal */
	int64_t prompt_until;   /* until then we prompt its new subflows to send an acknowledgement */
	const char *told;       /* the caller's: the last message about its silence; NULL: none, or the silence has ended */
};

/* An address whose endpoint is ours. */
struct paths_managed {
	union sockaddr_ip address;
	bool usable; /* otherwise its network is gone or has no carrier, and the endpoint stays */
};

/* The actions for an address: to its endpoint, or without touching it. */
struct paths_renewal {
	union sockaddr_ip local;
	bool remove, add;
	bool last;              /* delete the others' endpoints first: their RM_ADDR travels over this network */
	bool announce;          /* after the deletion: make an endpoint that announces the address and opens no subflow */
	bool prompt;            /* make its subflows send an acknowledgement, so that the peer sends its data */
	bool ask;               /* send a SYN of plain TCP from there to @peer; report an answer to paths_outages_answered() */
	union sockaddr_ip peer;
};

struct paths_outages {
	struct paths_network list[PATHS_OUTAGES_MAX]; /* in the order of the addresses */
	size_t count;
	struct paths_flows flows;
	int64_t resent; /* when we last closed a subflow of a stalled connection; 0: never */
	union sockaddr_ip seen[PATHS_OUTAGES_MAX]; /* addresses that had subflows: peers may still count those that ended */
	size_t seen_count;
};

/*
 * paths_outages_find() - compare the subflows with the last look, and decide what to do now
 * @own: addresses whose endpoints we may renew, the preferred one first; those beyond PATHS_OUTAGES_MAX are ignored
 * @out: set to the actions. Returns their number.
 */
size_t paths_outages_find(struct paths_outages *outages, const struct paths_subflows *subflows,
			  const struct paths_managed *own, size_t count, int64_t now,
			  struct paths_renewal out[static PATHS_OUTAGES_MAX]);

/* Notes that a peer has answered a SYN from the address (ask). */
void paths_outages_answered(struct paths_outages *outages, const union sockaddr_ip *local, int64_t now);

/* Returns the milliseconds until the next look: more if nothing happens. */
int paths_outages_interval_ms(const struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now);

#endif
