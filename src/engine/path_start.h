/* SPDX-License-Identifier: BSD-3-Clause */
/* path_start.h - chooses the network that a connection begins on, and whether it begins anew on another one */
#ifndef ENGINE_PATH_START_H
#define ENGINE_PATH_START_H

#include "client/settings.h"
#include "common/clock.h"
#include "host/survey.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* --- shared by all dials of a process --- */

struct path_start;

struct dial_host {
	const struct settings *settings;
	void (*log)(const char *format, ...) __attribute__((format(printf, 1, 2)));
	int64_t (*clock)(void);                              /* CLOCK_MONOTONIC in ns */
	/*
	 * Does the connection with this serial still wait? @start may be another connection's by now, which another thread writes. NULL:
	 * path_start_end() is always called.
	 */
	bool (*is_waiting)(const struct path_start *start, int64_t serial);
	void (*trial_begins)(void);                          /* call path_trials_look() now and then; NULL: the front end does so anyway */
};
extern struct dial_host dial_host;

/* Call it before all other functions of the engine. The settings must stay. */
void dial_init(const struct dial_host *host);

/* --- the path of one connection --- */

/* The path of a connection's SYN, and the watch over it until the SYN, or the request behind the handshake, is answered. */
struct path_start {
	struct path path;       /* the usual path while its source is :: */
	bool may_move;          /* the program has chosen neither an address nor a device */
	bool placed;            /* we have bound the socket to a network; stays set on the usual path, so that the next attempt undoes it */
	bool tried_path;        /* the connection has begun a trial of a failed path */
	uint8_t moves;          /* how often the connection has begun anew on another path */
	uint8_t survey;         /* the number of this connection's survey; 0: none */
	bool others_ask;        /* path_start_ask() sent nothing: another connection asks, or path_start_look() will */
	int64_t serial;         /* identifies the connection in this process */
	int64_t syn_at;         /* CLOCK_MONOTONIC in ns, like all below: when the SYN was sent */
	int64_t request_at;     /* when the request was sent behind the handshake; 0: it wasn't */
	int64_t look_at;        /* when to look at the path; 0: never */
};

/* path_start_init() - call it before the first SYN. @may_move: as in the struct; @source: the address that the program chose, or :: */
void path_start_init(struct path_start *start, bool may_move, const struct in6_addr *source);

/*
 * path_start_choose() - choose the path for a request to @converter at @addr
 * Keeps the usual path, without a system call, unless that path has failed, or host_preferences() names networks. Returns the
 * converter, which may be another one, and puts its address into @addr.
 */
int path_start_choose(struct path_start *start, const struct converters_query *query, int converter, union sockaddr_ip *addr);

/* May a connection to @addr get further subflows, over whatever network? If the user's policy forbids that, logs the reason. */
bool path_start_may_have_more(const union sockaddr_ip *addr);

/* path_start_bind() - bind the unconnected socket @fd to the chosen network, before each SYN. Returns 0 or -errno. */
int path_start_bind(const struct path_start *start, int fd);

/* Has an earlier attempt bound @fd to another device? Linux doesn't let a program undo that, so path_start_bind() needs a new socket. */
bool path_start_needs_socket(const struct path_start *start, int fd);

/*
 * path_start_bind_directly() - bind @fd to a network that works, for a direct connection to @server
 * Takes the network that the connection has moved to. Otherwise takes the usual one, unless all usual paths to converters are silent and
 * another path isn't, or the user's settings exclude the usual network. Returns 0, or -ENETUNREACH if no network is left.
 */
int path_start_bind_directly(const struct path_start *start, int fd, const union sockaddr_ip *server);

/* path_start_give_back() - leave the network to the kernel again, since the move to another one didn't help */
void path_start_give_back(struct path_start *start);

/*
 * path_start_refused() - look for another path after the connection was refused, for @reason
 * @how: CACHE_PATH_SILENT if the network has refused the SYN (error_means_no_path()). CACHE_PATH_REFUSES if a reset or other bytes than a
 * response have come. These may concern this connection alone, so a trial asks that path at once.
 * Returns whether there is another path: then start->path is that one, and @addr its converter's address.
 */
bool path_start_refused(struct path_start *start, const struct converters_query *query, enum cache_path how, const char *reason,
			union sockaddr_ip *addr);

/* path_start_served() - note that a Convert response has come */
void path_start_served(const struct path_start *start);

/*
 * path_start_ask() - send probes on the path of a silent connection, unless it or another connection has sent some
 * @whole: as for survey_ask(). path_start_asked() tells the answer. Other connections needn't wait for it: they may try the converter.
 */
void path_start_ask(struct path_start *start, bool whole);

enum path_answer {
	PATH_ANSWERS, /* other connections get through on the path: only this one meets silence */
	PATH_SILENT,  /* no other connection gets through either */
	PATH_UNKNOWN, /* no answer is due yet, or another connection asks */
	PATH_UNASKED, /* we couldn't send probes, or had no time to */
};

enum path_answer path_start_asked(struct path_start *start);

/* path_start_sent() - set the time of the first look, after the SYN was sent at @at, CLOCK_MONOTONIC in ns */
void path_start_sent(struct path_start *start, int64_t at);

/* path_start_sent_behind() - watch the path anew, until the request that was sent behind the handshake is acknowledged */
void path_start_sent_behind(struct path_start *start);

/* The SYN or request that is unanswered. */
struct path_start_syn {
	enum survey_syn carries;
	bool (*is_unanswered)(void *owner); /* called once more before the attempt is given up for another path */
	void *owner;
};

/*
 * path_start_look() - check whether the path of @syn works; call it at look_at
 * @query: selects the converters that may be asked
 * Returns PATHS_MOVE, with start->path the new path, and its converter's address in @addr; PATHS_BEHIND; or another value, after which
 * there is nothing to do before look_at.
 */
enum paths_do path_start_look(struct path_start *start, const struct converters_query *query, const struct path_start_syn *syn,
			      union sockaddr_ip *addr);

/* path_start_put_off() - look a little later, since the small stack of a signal handler has no room for it */
void path_start_put_off(struct path_start *start);

/* path_start_answered() - note a SYN+ACK. @ms: its round trip; @alone: it didn't wait for a server */
void path_start_answered(const struct path_start *start, unsigned int ms, bool alone);

/* path_start_end() - end the attempt's probes, however the attempt has ended */
void path_start_end(struct path_start *start);

/*
 * path_trials_look() - check whether failed paths with a trial work again
 * Returns the time of the next look, CLOCK_MONOTONIC in ns; 0: there is no trial.
 */
int64_t path_trials_look(void);

/* After fork(): closes the child's copies of the parent's probes. */
void path_start_repair_in_child(void);

#endif
