/* SPDX-License-Identifier: BSD-3-Clause */
/* path_list.h - the paths that a connection can begin on: networks of this machine, each with a converter */
#ifndef HOST_PATH_LIST_H
#define HOST_PATH_LIST_H

#include "client/converters.h"
#include "client/paths.h"
#include "host/networks.h"

/* The usual paths first, each with its name in the log. */
struct path_list {
	struct path paths[PATHS_MAX];
	union sockaddr_ip addrs[PATHS_MAX]; /* the converter's, in the form that the socket takes */
	char names[PATHS_MAX][IF_NAMESIZE];
	size_t count;
	bool forbidden; /* there is none, since the user wants no connection to begin on those that there are */
};

/*
 * path_list_make() - list the paths to all converters that can be asked for the destination of @query
 * Without those on which the user wants no connection to begin. Asks the kernel by netlink; see networks_to().
 */
void path_list_make(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_choose() - likewise, and choose one
 * Returns its index in @list, or -1 where none of them works as far as is known, so that a connection begins as if nothing were.
 */
int path_list_choose(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_missed() - the path to be asked whether it works again: one that would have been chosen instead of @best, had it not failed
 * Or @best itself, if something is known against it. paths_is_trial_due() has said so. Returns its index in @list, or -1 if there is none.
 */
int path_list_missed(const struct path_list *list, int best);

/*
 * path_list_elsewhere() - likewise, for a connection whose path (@own) has been found to have failed since its SYN
 * By somebody who has moved: so this is the best path that is known to work; or, as that one's answer may be under way, the best on the
 * one other network that there is, as far as it is known. Returns -1 if there is none.
 */
int path_list_elsewhere(struct path_list *list, const struct settings *settings, const struct converters_query *query,
			const struct path *own);

/* Does the network say by @error, of a SYN, that its path leads nowhere? Another one may. A reset is a host's, and isn't about the path. */
bool path_is_refused(int error);

/*
 * path_list_refused() - list the paths for a connection whose own (@own) has refused its SYN by path_is_refused(), which is noted of it
 * Returns the index of the best one that isn't known to have failed, or -1 if there is none.
 */
int path_list_refused(struct path_list *list, const struct settings *settings, const struct converters_query *query,
		      const struct path_id *own);

/*
 * path_list_is_forbidden() - do all networks that lead to a converter bear the user's =never?
 * Nothing is asked where no network does.
 */
bool path_list_is_forbidden(const struct settings *settings, const struct converters_query *query);

/* Which paths of @among (a bit for each) are on another device than @own? None, if these are several: one would be taken at a venture. */
uint32_t path_list_on_one_device(const struct path_list *list, const struct path *own, uint32_t among);

/* path_complaint() - what was found of the path, for the log: completes "converter …: the path to it " */
const char *path_complaint(const struct path_id *id);

/* Which network a direct connection has taken in place of the usual one. */
struct path_direct {
	char name[IF_NAMESIZE];
	const char *why; /* what is wrong with the usual one: "is silent", for the log */
};

/*
 * path_direct_take() - have a direct connection to @server take a network that works, and none on which the user wants no connection (=never)
 * @fd: isn't connected; one that is bound to an address isn't taken away from a network with =never
 * @moved: the connection has been moved by us, to the network of the interface @device; 0: back to the usual one. A connection that hasn't
 * takes another network if all usual paths to converters are silent and a converter has answered on it.
 * Returns 1 with @taken set, 0 where it stays on the usual network, or -ENETUNREACH if the user's =never leaves none.
 */
int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken);

#endif
