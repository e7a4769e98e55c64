/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_look.h - does the path of an unanswered SYN or request work, and does a better one work again?
 *
 * What decides is client/paths.c; here are the probes. All of these are for a claimed conn, and never block.
 */
#ifndef SHIM_PATH_LOOK_H
#define SHIM_PATH_LOOK_H

#include "client/paths.h"
#include "client/settings.h"
#include "shim/connect/path_begin.h"
#include "shim/socket/conn.h"

/* @settings: kept, must stay. */
void path_look_init(const struct settings *settings);

/* The SYN of @conn has just been sent: from now on its path is looked after. */
void path_look_begin(struct conn *conn);

/*
 * path_look_behind() - the request of @conn, whose SYN was answered, has just been sent behind the handshake
 * Its path is looked after anew, until the request is acknowledged.
 */
void path_look_behind(struct conn *conn, int fd);

/*
 * path_look_due() - the deadline of @conn is over: is it the path that is to be looked at? If not, it is the converter.
 * In a signal handler on a stack of its own, which hasn't the room, the look is put off.
 */
bool path_look_due(struct conn *conn);

/*
 * path_look() - look at the probes, and send those that are due
 * @query: for the converters that may be asked
 * Returns PATHS_MOVE, with @list and @best set to where the connection is to begin anew; PATHS_BEHIND; or anything else, with the
 * time of the next look set, after which there is nothing to be done.
 */
enum paths_do path_look(struct conn *conn, int fd, const struct converters_query *query, struct path_list *list, int *best);

/* The deadline of @conn has been set to when its converter is to be looked at: lowers it to when its path is, if that is earlier. */
void path_look_go_on(struct conn *conn);

/* The attempt is over, in whichever way: its probes are, too. What was learned of paths by then is noted. */
void path_look_end(struct conn *conn);

/* A connection is to begin elsewhere since @path has failed, and paths_is_trial_due() of it: asks it whether it works again. */
void path_look_try(struct conn *conn, const struct path *path);

/* After fork(): the child closes its copies of probes, which are the parent's. */
void path_look_repair_in_child(void);

#endif
