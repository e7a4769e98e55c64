/* SPDX-License-Identifier: BSD-3-Clause */
/* outages_world.h - subflows over two networks that are looked at as time passes, for the tests of outage.c */
#ifndef OUTAGES_WORLD_H
#define OUTAGES_WORLD_H

#include "common/clock.h"
#include "paths/outage.h"
#include "run.h"

#define LOOK_MS 200
#define MUCH 100000 /* bytes in that time */
#define PEER_PORT 1234

enum { WIFI, LTE, NETWORKS };

extern union sockaddr_ip addresses[NETWORKS];
extern struct paths_managed own[NETWORKS];
extern struct paths_outages outages;
extern struct paths_subflows subflows;
extern struct paths_renewal renewals[PATHS_OUTAGES_MAX]; /* what is to be done since the last look */
extern size_t done;                                      /* how many these are */
extern int64_t now;

/* Both networks are there, nothing is known of them, and there are no subflows: a checked fixture. */
void begin(void);

/* An established subflow of the connection, which was heard just now, in a place among the subflows. */
struct paths_subflow *put_subflow(size_t at, uint32_t token, int network);
struct paths_subflow *add_subflow(uint32_t token, int network);

/* Looks after some time has passed; what is heard meanwhile is the test's to say. */
void look_after(int ms);

/* What is to be done to the network's endpoint; nothing, if it isn't among the renewals. */
const struct paths_renewal *renewal_of(int network);

void hear(struct paths_subflow *subflow, uint64_t bytes);

/* The subflows of an endpoint that was taken away are gone; those of one that was made have sent their SYNs. */
void renewed(struct paths_subflow *subflow);

#endif
