/* SPDX-License-Identifier: BSD-3-Clause */
/* begin.h - the network that a connection begins on, and whether it begins anew on another one */
#ifndef SUPERVISE_BEGIN_H
#define SUPERVISE_BEGIN_H

#include "host/survey.h"

#include <stdint.h>

/* Where a connection's SYN goes, and what is asked about that path while that, or the request behind the handshake, is unanswered. */
struct begin {
	const struct settings *settings;
	struct path own;       /* the usual one as long as its source is :: */
	bool may_move;         /* the program has chosen neither an address nor a device */
	bool placed;           /* the socket is bound to a network of ours */
	bool tried_path;       /* one that has failed was asked whether it works again */
	int moves;
	int64_t syn_at;        /* nanoseconds of CLOCK_MONOTONIC */
	int64_t request_at;    /* the same, when the request was sent behind the handshake; 0: it wasn't */
	int64_t look_at;       /* 0: nothing is to be asked any more */
	struct survey *survey; /* NULL: no probe was sent */
};

/* begin_init() - of a connection of the socket @fd, on which nothing was sent yet; @bound: to an address of the program's */
void begin_init(struct begin *begin, const struct settings *settings, int fd, bool bound);

/*
 * begin_choose() - the path for a request to @converter, at @addr
 * The usual one, unless that is known to have failed or the user has said something (CONVERT_PATHS). Returns the converter, which may
 * be another one, with its address in @addr.
 */
int begin_choose(struct begin *begin, const struct converters_query *query, int converter, union sockaddr_ip *addr);

/* begin_place() - bind @fd, which isn't connected, as was chosen; before each SYN. Returns 0 or -errno. */
int begin_place(const struct begin *begin, int fd);

/* begin_give_back() - have it go on where the kernel puts it, which begin_place() sees to: it was moved, and that didn't help */
void begin_give_back(struct begin *begin);

/*
 * begin_leave() - the network has refused the SYN with @error: is there another one?
 * Returns whether there is, with begin->own the path to go on with, to the converter at @addr.
 */
bool begin_leave(struct begin *begin, const struct converters_query *query, int error, union sockaddr_ip *addr);

/* begin_place_direct() - have a direct connection of @fd to @server take a network that works. Returns 0, or -ENETUNREACH if none may be. */
int begin_place_direct(const struct begin *begin, int fd, const union sockaddr_ip *server);

/* begin_sent() - the SYN was sent, @now: sets the time of the first look */
void begin_sent(struct begin *begin, int64_t now);

/*
 * begin_sent_behind() - the request was sent behind the handshake, @now: sets the time of the first look
 * After begin_reached(). The path is looked after until the request is acknowledged.
 */
void begin_sent_behind(struct begin *begin, int64_t now);

/* A SYN, or a request behind the handshake, that waits for its answer. */
struct begin_syn {
	enum survey_syn carries;
	bool (*is_unanswered)(const void *owner); /* the last look before its attempt is ended */
	const void *owner;
};

/*
 * begin_look() - look whether the path of @syn works, now that look_at is over
 * @query: for the converters that may be asked; @now: clock_ns() from before it was seen to be unanswered
 * Returns PATHS_MOVE, where begin->own is the path to go on with, to the converter at @addr; PATHS_BEHIND; or anything else, after
 * which there is nothing to be done before look_at.
 */
enum paths_do begin_look(struct begin *begin, const struct converters_query *query, const struct begin_syn *syn, int64_t now,
			 union sockaddr_ip *addr);

/* begin_reached() - a SYN+ACK has come, whose round trip took @ms; @alone: it waited for no server */
void begin_reached(const struct begin *begin, unsigned int ms, bool alone);

/* begin_end() - the attempt is over, in whichever way: its probes are, too */
void begin_end(struct begin *begin);

/*
 * begin_trials_look() - look whether usual paths that had failed work again
 * Returns when to look again, 0 for not at all.
 */
int64_t begin_trials_look(int64_t now);

/* Is one on its way? */
bool begin_trials_go_on(void);

#endif
