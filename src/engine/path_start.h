/* SPDX-License-Identifier: BSD-3-Clause */
/* path_start.h - the network that a connection begins on, and whether it begins anew on another one */
#ifndef ENGINE_PATH_START_H
#define ENGINE_PATH_START_H

#include "host/survey.h"

#include <stdatomic.h>
#include <stdint.h>

/* Where a connection's SYN goes, and the watch over that path while the SYN, or the request behind the handshake, is unanswered. */
struct path_start {
	struct path own;    /* the usual one as long as its source is :: */
	bool may_move;      /* the program has chosen neither an address nor a device */
	bool placed;        /* the socket is bound to a network of ours */
	bool tried_path;    /* the connection has asked a failed path whether it works again */
	uint8_t moves;      /* how often the connection has begun anew on another path */
	uint8_t survey;     /* which survey is this connection's; 0: none */
	_Atomic int64_t serial; /* tells the connection from all others of this process */
	int64_t syn_at;     /* CLOCK_MONOTONIC in ns, as all below: when the SYN was sent */
	int64_t request_at; /* when the request was sent behind the handshake; 0: it wasn't */
	int64_t look_at;    /* when the path is to be looked at; 0: never */
};

/* path_start_init() - a connection on which nothing was sent yet. @may_move: see there. @source: the program's own address, or :: */
void path_start_init(struct path_start *start, bool may_move, const struct in6_addr *source);

/*
 * path_start_choose() - the path for a request to @converter, at @addr
 * The usual one, with nothing asked and nothing changed, unless that is known to have failed or the user has said something
 * (CONVERT_PATHS). Returns the converter, which may be another one, with its address in @addr.
 */
int path_start_choose(struct path_start *start, const struct converters_query *query, int converter, union sockaddr_ip *addr);

/* path_start_bind() - bind @fd, which isn't connected, as was chosen; before each SYN. Returns 0 or -errno. */
int path_start_bind(const struct path_start *start, int fd);

/*
 * path_start_bind_directly() - have a direct connection of @fd to @server take a network that works
 * That is the one that the connection has moved to, or another one where all usual paths to converters are silent and another one isn't,
 * or where the user wants no connection to begin on the usual one. Returns 0, or -ENETUNREACH if that leaves none.
 */
int path_start_bind_directly(const struct path_start *start, int fd, const union sockaddr_ip *server);

/* path_start_give_back() - the connection goes on where the kernel puts it, since the move to another network didn't help */
void path_start_give_back(struct path_start *start);

/*
 * path_start_refused() - the network has refused the SYN with @error: is there another one?
 * Returns whether there is, with start->own the path to go on with, to the converter at @addr.
 */
bool path_start_refused(struct path_start *start, const struct converters_query *query, int error, union sockaddr_ip *addr);

/* path_start_sent() - the SYN was sent @at, CLOCK_MONOTONIC in ns: sets the time of the first look */
void path_start_sent(struct path_start *start, int64_t at);

/* path_start_sent_behind() - the request was sent behind the handshake: the path is watched anew, until that is acknowledged */
void path_start_sent_behind(struct path_start *start);

/* What waits for its answer. */
struct path_start_syn {
	enum survey_syn carries;
	bool (*is_unanswered)(void *owner); /* asked once more right before its attempt is ended */
	void *owner;
};

/*
 * path_start_look() - look whether the path of @syn works, now that look_at is over
 * @query: for the converters that may be asked
 * Returns PATHS_MOVE, with start->own the path to go on with, to the converter at @addr; PATHS_BEHIND; or anything else, after which
 * there is nothing to be done before look_at.
 */
enum paths_do path_start_look(struct path_start *start, const struct converters_query *query, const struct path_start_syn *syn,
			      union sockaddr_ip *addr);

/* path_start_put_off() - look a little later: a signal handler on a stack of its own hasn't the room */
void path_start_put_off(struct path_start *start);

/* path_start_answered() - a SYN+ACK has come, whose round trip took @ms; @alone: it waited for no server */
void path_start_answered(const struct path_start *start, unsigned int ms, bool alone);

/* path_start_end() - the attempt is over, in whichever way: so are its probes */
void path_start_end(struct path_start *start);

/*
 * path_trials_look() - look whether failed paths that were asked work again
 * Returns when to look again, 0: no path is being asked.
 */
int64_t path_trials_look(void);

/* After fork(): the child closes its copies of probes, which are the parent's. */
void path_start_repair_in_child(void);

#endif
