/* SPDX-License-Identifier: BSD-3-Clause */
/* outage.h - which networks have fallen silent, from what the kernel tells of subflows (no I/O) */
#ifndef PATHS_OUTAGE_H
#define PATHS_OUTAGE_H

#include "paths/flows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
struct paths_own {
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
			  const struct paths_own *own, size_t count, int64_t now,
			  struct paths_renewal out[static PATHS_OUTAGES_MAX]);

/* Somebody was reached from an address that was to be asked. */
void paths_outages_answered(struct paths_outages *outages, const union sockaddr_ip *local, int64_t now);

/* How long until the next look, in milliseconds: longer where nothing goes on. */
int paths_outages_interval_ms(const struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now);

#endif
