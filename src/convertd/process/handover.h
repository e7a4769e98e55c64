/* SPDX-License-Identifier: BSD-3-Clause */
/* handover.h - from one convertd to the next: its sockets, and at which moment which of them serves */
#ifndef CONVERTD_HANDOVER_H
#define CONVERTD_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct handover;
struct settings;

/* What a descriptor that is handed over is. */
enum handover_kind {
	HANDOVER_LISTENER, /* listens for clients */
	HANDOVER_METRICS,  /* listens for questions by HTTP */
	HANDOVER_RULES,    /* owns the rules for SYNs: withholding_rules_fd() */
	HANDOVER_KIND_COUNT
};

/* ----- the convertd that serves ----- */

/* What the serving convertd has to do for the handover; all of it is called in its main thread's loop. */
struct handover_duties {
	/* pause: accept the clients that are in the queues, and none that come later; resume: accept as before. */
	void (*pause)(void *arg);
	void (*resume)(void *arg);
	/* Call handover_give() for each socket; @listeners: for those for clients as well. */
	void (*give)(void *arg, struct handover *handover, bool listeners);
	/* End as soon as sessions have. @replaced: another convertd serves with what was given. */
	void (*end)(void *arg, bool replaced, const char *reason);
};

/* @arg: for the duties. Returns NULL without memory. */
struct handover *handover_create(struct event_base *base, const struct handover_duties *duties,
				 void *arg);

/* NULL is fine. */
void handover_destroy(struct handover *handover);

/*
 * handover_offer() - be found by whoever wants to listen where @settings say, no longer elsewhere
 * Where that isn't possible, the log tells it on debug level: it takes nothing from who is served.
 */
void handover_offer(struct handover *handover, const struct settings *settings);

/* Has the service manager keep our lifeline, where it keeps descriptors; see handover.c. */
void handover_keep_lifeline(struct handover *handover);

/*
 * handover_is_expected() - will the service manager start another convertd, once the main process has ended?
 * As far as it keeps what we hand it.
 */
bool handover_is_expected(const struct handover *handover);

/* The main process has ended: serve until another one takes over, or until it is sure that none will. */
void handover_await(struct handover *handover);

/* It is stopping: there is nothing to pause or to end any more, but other sockets to give. */
void handover_set_draining(struct handover *handover);

/* Gives the other convertd one socket; to be called by the duty @give only. It stays the caller's. */
void handover_give(struct handover *handover, enum handover_kind kind, int fd);

/* ----- the one that starts ----- */

/*
 * handover_ask() - is there a convertd where @settings want to listen? Take its sockets
 * @replace: also of one that isn't stopping: it accepts nobody from now on, until this process has called
 *           handover_confirm(), and goes on if that ends without
 * @take: called for each socket, which is its from then on
 * Waits for a few seconds at most. Returns a descriptor for handover_confirm(), or -1 if there is none, or one
 * that serves and isn't to be replaced.
 */
int handover_ask(const struct settings *settings, bool replace,
		 void (*take)(void *arg, enum handover_kind kind, int fd), void *arg);

/* Tells the other convertd that this one serves: it ends once its sessions have. Closes @conversation; -1 is fine. */
void handover_confirm(int conversation);

/* Tells the convertd at the other end of the lifeline, if there is one, that a start was tried. Returns whether there is one. */
bool handover_touch(int lifeline);

#endif
