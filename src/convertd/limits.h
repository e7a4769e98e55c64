/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * A client here is all addresses of one prefix. Nothing is looked at but counters and times that
 * are handed in. All threads may use one struct limits at once.
 */
#ifndef CONVERTD_LIMITS_H
#define CONVERTD_LIMITS_H

#include "common/prefix.h"
#include "convertd/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A limit; 0 stands for none in each. */
struct limit {
	unsigned per_client;
	unsigned total;
};

struct limits_settings {
	struct limit pending;
	struct limit connections;
	struct limit errors;          /* a second */
	unsigned prefix_v4, prefix_v6; /* bits of an address that make a client */
};

/* What a session is counted as. */
enum limits_class {
	LIMITS_PENDING,  /* until the server has answered and the client has been told */
	LIMITS_OPEN,     /* from then on */
	LIMITS_REFUSING, /* until its refusal has arrived */
	LIMITS_CLASS_COUNT
};

struct limits;
struct limits_client;

/* Nothing is limited yet. Returns NULL without memory or a source of random numbers. */
struct limits *limits_create(void);

/* No session may be counted any more. NULL is fine. */
void limits_destroy(struct limits *limits);

/* In force for all that is asked from now on; who is whose client stays as it was counted. */
void limits_configure(struct limits *limits, const struct limits_settings *settings);

/*
 * limits_enter() - a session of the client at @address (IPv4 as v4-mapped) begins, pending
 * Returns the client that it is counted for, until limits_leave(); NULL without memory.
 */
struct limits_client *limits_enter(struct limits *limits, const struct in6_addr *address);

void limits_move(struct limits *limits, struct limits_client *client, enum limits_class from,
		 enum limits_class to);

void limits_leave(struct limits *limits, struct limits_client *client, enum limits_class from,
		  uint64_t now_ms);

/*
 * limits_expect_leave() - one pending session has been told to go, by another thread than its own
 * Until limits_expect_no_leave(), which follows once it has gone or turns out to stay, there is
 * room for one more in all. In between, limits_leave_still_needed() says whether that room is
 * needed after all.
 */
void limits_expect_leave(struct limits *limits);
bool limits_leave_still_needed(struct limits *limits);
void limits_expect_no_leave(struct limits *limits);

/* The sessions of all clients; the clients that are known, with a session or without. */
size_t limits_sessions(struct limits *limits);
size_t limits_clients(struct limits *limits);

/* Clients without a session that are known at most. */
#define LIMITS_IDLE_MAX 8192

/*
 * limits_client_exceeded(), limits_total_exceeded() - is a pending session one too many
 * It is counted already. For this client, or for all together. Return of what, or
 * OUTCOME_NONE.
 */
enum outcome limits_client_exceeded(struct limits *limits, const struct limits_client *client);
enum outcome limits_total_exceeded(struct limits *limits);

/*
 * limits_may_refuse() - may one more session of this client wait for its refusal to arrive?
 * As many may as may be pending.
 */
bool limits_may_refuse(struct limits *limits, const struct limits_client *client);

/* limits_take_error() - may an error be sent to this client now? If so it is counted as sent. */
bool limits_take_error(struct limits *limits, struct limits_client *client, uint64_t now_ms);

#endif
