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
	union sockaddr_ip addrs[PATHS_MAX]; /* the converter's, in the form for the socket's family */
	char names[PATHS_MAX][IF_NAMESIZE];
	size_t count;
	bool forbidden; /* the list is empty because the user forbids all paths */
};

/*
 * path_list_make() - list the paths to all converters that serve the destination of @query
 * Leaves out those on which the user forbids connections to begin. Asks the kernel by netlink; see networks_to().
 */
void path_list_make(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_choose() - likewise, and choose one
 * Returns its index in @list, or -1 if we know of none that works: the connection then begins on the usual path.
 */
int path_list_choose(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_missed() - find a failed path that we would otherwise have chosen instead of @best, and whose trial is due
 * It may be @best itself, if that has failed. See paths_is_trial_due(). Returns its index in @list, or -1 if there is none.
 */
int path_list_missed(const struct path_list *list, int best);

/*
 * path_list_elsewhere() - likewise, for a connection whose path (@own) another connection has found to have failed
 * Returns the best path that is known to work or, while its answer may still be on its way, the best on the only other network. Returns
 * -1 if there is none.
 */
int path_list_elsewhere(struct path_list *list, const struct settings *settings, const struct converters_query *query,
			const struct path *own);

/* Does the error of a SYN mean that its path leads nowhere? Another may work then. A reset comes from a host, and isn't such an error. */
bool path_is_refused(int error);

/*
 * path_list_refused() - list the paths for a connection that was refused on @own, and note that failure
 * @how: CACHE_PATH_SILENT for an error of path_is_refused(). CACHE_PATH_REFUSES: noted only if there is another path, since otherwise the
 * converter is the cause as likely.
 * Returns the index of the best path without a known failure, or -1 if there is none.
 */
int path_list_refused(struct path_list *list, const struct settings *settings, const struct converters_query *query,
		      const struct path_id *own, enum cache_path how);

/*
 * path_list_is_forbidden() - do all networks that lead to a converter have the user's =never?
 * Asks the kernel only if a network has it.
 */
bool path_list_is_forbidden(const struct settings *settings, const struct converters_query *query);

/* Would Multipath TCP to @to break the user's word (networks_break_word())? Returns the reason, or NULL. */
const char *path_list_breaks_word(const struct settings *settings, const union sockaddr_ip *to);

/* Returns the paths of @among (a bit for each) on another device than @own; none if those devices are several: we can't choose one. */
uint32_t path_list_on_one_device(const struct path_list *list, const struct path *own, uint32_t among);

/* path_complaint() - return the fault of the path, for the log: completes "converter …: the path to it " */
const char *path_complaint(const struct path_id *id);

/* The network that a direct connection uses in place of the usual one. */
struct path_direct {
	char name[IF_NAMESIZE];
	const char *why; /* the fault of the usual one, for the log: "is silent" */
};

/*
 * path_direct_take() - bind a direct connection to @server to a network that works and that the user doesn't forbid (=never)
 * @fd: isn't connected; if it is bound to an address, it stays on its network even with =never
 * @moved: we have moved the connection to the network of the interface @device; 0: back to the usual one. A connection that we haven't
 * moved takes another network if all usual paths to converters are silent and a converter has answered on that one.
 * Returns 1 with @taken set; 0 if it stays on the usual network; or -ENETUNREACH if the user's =never leaves none.
 */
int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken);

#endif
