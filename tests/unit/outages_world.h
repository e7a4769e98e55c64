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
extern struct paths_renewal renewals[PATHS_OUTAGES_MAX]; /* the decisions of the last look */
extern size_t done;                                      /* their number */
extern int64_t now;

/* A checked fixture: both networks are up, nothing is known of them, and there are no subflows. */
void begin(void);

/* Puts an established subflow of connection @token, heard just now, at place @at, or behind the others. */
struct paths_subflow *put_subflow(size_t at, uint32_t token, int network);
struct paths_subflow *add_subflow(uint32_t token, int network);

/* Lets time pass, in which nothing is heard, and looks. */
void look_after(int ms);

/* Returns the decision about the network's endpoint; an empty one if there is none. */
const struct paths_renewal *renewal_of(int network);

void hear(struct paths_subflow *subflow, uint64_t bytes);

/* The endpoint was deleted and made again: the subflow is a new one, whose SYN has left. */
void renewed(struct paths_subflow *subflow);

#endif
