/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survey.h - the paths that a connection can begin on, and the probes that test them
 *
 * client/paths.c decides. Nothing here blocks or allocates memory, but trials_start().
 */
#ifndef HOST_SURVEY_H
#define HOST_SURVEY_H

#include "client/converters.h"
#include "client/paths.h"
#include "convert/convert.h"
#include "host/networks.h"

/* --- path_list.c: the paths, networks of this machine with a converter each --- */

/* The usual paths first, each with its name in the log. */
struct path_list {
	struct path paths[PATHS_MAX];
	union sockaddr_ip addrs[PATHS_MAX]; /* the converter's, in the form for the socket's family */
	char names[PATHS_MAX][IF_NAMESIZE];
	size_t count;
	bool forbidden; /* the list is empty because the user forbids all paths */
};

/*
 * path_list_make() - list the paths to the first four converters that serve the destination of @query
 * Leaves out those on which the user forbids connections to begin. Asks the kernel by netlink; see networks_to().
 */
void path_list_make(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_choose() - likewise, and choose one
 * Returns its index in @list. Returns -1 if there is none, or if all have failed and the user orders none (CONVERT_PATHS): then the
 * connection begins on the usual path.
 */
int path_list_choose(struct path_list *list, const struct settings *settings, const struct converters_query *query);

/*
 * path_list_missed() - find a failed path that we would otherwise have chosen instead of @best, and whose trial is due
 * It may be @best itself, if that has failed. See paths_is_trial_due(). Returns its index in @list, or -1 if there is none.
 */
int path_list_missed(const struct path_list *list, int best);

/*
 * path_list_elsewhere() - list the paths, and choose one for a connection whose path (@own) has failed another connection
 * Returns the best path if it is known to work. If nothing is known of it, its answer may still be on its way: returns the best path on the
 * only other network. Returns -1 if there is none.
 */
int path_list_elsewhere(struct path_list *list, const struct settings *settings, const struct converters_query *query,
			const struct path *own);

/* Does the error of a SYN mean that its path leads nowhere? Another may work then. A reset comes from a host, and isn't such an error. */
bool error_means_no_path(int error);

/*
 * path_list_refused() - list the paths for a connection that was refused on @own, and note that failure
 * @how: CACHE_PATH_SILENT for an error of error_means_no_path(). CACHE_PATH_REFUSES: noted only if there is another path, since otherwise
 * the converter is as likely to be the cause.
 * Returns the index of the best path without a known failure, or -1 if there is none.
 */
int path_list_refused(struct path_list *list, const struct settings *settings, const struct converters_query *query,
		      const struct path_id *own, enum cache_path how);

/*
 * path_list_is_forbidden() - do all networks that lead to a converter have the user's =never?
 * Asks the kernel only if a network has it.
 */
bool path_list_is_forbidden(const struct settings *settings, const struct converters_query *query);

/* Would Multipath TCP to @to break the user's policy (networks_policy_breach())? Returns the reason, or NULL. */
const char *path_list_policy_breach(const struct settings *settings, const union sockaddr_ip *to);

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
 * moved takes another network if a converter is silent on its usual path, none works there, and one has answered on that network.
 * Returns 1 with @taken set; 0 if it stays on the usual network; or -ENETUNREACH if the user's =never leaves none.
 */
int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device,
		     struct path_direct *taken);

/* --- path_probe.c: tests one path, by a separate connection; the one prober of library, supervisor and path service --- */

#define PATH_PROBE_REQUEST_MAX (CONVERT_HEADER_LEN + 4) /* bytes of a message with an Info TLV alone, Section 6.2.3 */

/* Writes a message that a converter answers at once, without any server. Returns its length in bytes, or 0 if that fails. */
size_t path_probe_request(uint8_t request[static PATH_PROBE_REQUEST_MAX]);

/* A connection with an Info TLV in its SYN, or without data, up to the first answer. */
struct path_probe {
	int fd;           /* -1: the probe is over */
	uint64_t cookie;  /* its SO_COOKIE, since an application may close descriptors that it didn't open */
	int64_t sent;     /* CLOCK_MONOTONIC in ns, just after the SYN, or when the kernel refused to send it; 0: we didn't try */
	unsigned int ms;  /* time until the answer, once it is there */
	bool answered;    /* by a SYN+ACK */
	bool taken;       /* the SYN+ACK acknowledges the data */
	bool refused;     /* by a reset: the network works, but there is no converter, or no longer; @whole: or by other bytes */
	bool whole;       /* only a Convert response counts as an answer: on CACHE_PATH_REFUSES, and for survey_ask() with @whole */
};

/*
 * path_probe_send() - send the SYN
 * @plain: send no data. The descriptor has a high number, is closed on exec(), and stays open until path_probe_look() sees the
 * answer, or until path_probe_close(). Returns false, with nothing sent, if the kernel refuses.
 */
bool path_probe_send(struct path_probe *probe, const struct path *path, bool plain);

/*
 * path_probe_send_to() - likewise, to any address
 * @source: IPv4 as v4-mapped; ::: the kernel chooses; @device: index of the interface to bind to; 0: none
 * errno has the kernel's reason if it refuses.
 */
bool path_probe_send_to(struct path_probe *probe, const union sockaddr_ip *to, const struct in6_addr *source, int device, bool plain);

/* path_probe_mark() - give the packets of all later probes this mark (SO_MARK, needs CAP_NET_ADMIN); 0: none */
void path_probe_mark(uint32_t mark);

/* Looks for the answer. If it is there, notes it in @probe and closes the descriptor. Returns whether the path has answered. */
bool path_probe_look(struct path_probe *probe);

void path_probe_close(struct path_probe *probe);

/*
 * path_probe_age() - return how long the probe has waited for its answer, in milliseconds
 * @now: clock_ns() from before path_probe_look(). A later time would be wrong: the caller may wait for a CPU in between, and the answer
 * may come meanwhile. Returns 0 for a SYN that was sent since.
 */
unsigned int path_probe_age(const struct path_probe *probe, int64_t now);

/* --- survey.c: the probes for one connection: does its path work, and which other one does? --- */

#define SURVEY_OWN_MAX 10

struct survey {
	struct path own;
	unsigned int held;                        /* milliseconds for which its converter withholds a SYN at most; 0: unknown */
	struct path_list list;
	struct path_probe probes[SURVEY_OWN_MAX]; /* on the connection's own path */
	struct path_probe plain;                  /* on the same path, without data in the SYN */
	struct path_probe others[PATHS_MAX];      /* on each other path of the list */
	struct path_probe others_plain[PATHS_MAX];
	unsigned int count;                       /* of @probes */
	bool others_asked;
	bool answered;                            /* the connection's own path has answered a probe */
	int64_t now;                              /* time of the look, which sees all that came before */
};

/* The unanswered part of the connection: its SYN, by the data in it, or for BEHIND the request after the handshake. */
enum survey_syn {
	SURVEY_PLAIN,     /* carries no data */
	SURVEY_DATA,      /* carries data that could also follow the handshake */
	SURVEY_DATA_ONLY, /* carries data that couldn't */
	SURVEY_BEHIND,    /* the SYN has its answer; the request after the handshake isn't acknowledged */
};

/* Are these the same path? */
bool path_is_same(const struct path_id *a, const struct path_id *b);

/* survey_reset() - initialize it without probes, and ignore its old contents */
void survey_reset(struct survey *survey);

/* survey_close() - end its remaining probes */
void survey_close(struct survey *survey);

/*
 * survey_begin() - begin the survey of a connection on @own, after survey_reset()
 * @own: this finds its facts; @query: for the alternative converters. Returns false if there is only one path, known to work: then there
 * is nothing to find out.
 */
bool survey_begin(struct survey *survey, const struct path *own, const struct settings *settings, const struct converters_query *query);

/*
 * survey_look() - look at the probes, and send those that are due
 * @waiting: milliseconds since the unanswered SYN or request; @now: clock_ns() from before the caller saw that it is unanswered
 * Returns the action. Before PATHS_MOVE and PATHS_BEHIND the caller looks at the connection once more: its SYN+ACK may have come
 * meanwhile. If it hasn't, the caller calls survey_leave(). @again: set to the milliseconds until the next look.
 */
enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again);

/*
 * survey_leave() - choose the path for a new beginning, after survey_look() has returned @what, PATHS_MOVE or PATHS_BEHIND
 * Notes all findings. Returns PATHS_MOVE with @best, an index in the survey's list; or PATHS_BEHIND; or PATHS_WAIT.
 */
enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best);

/*
 * survey_ask() - send probes on the path @own, whose connection is silent, after survey_reset() or survey_begin()
 * @whole: the connection got its SYN+ACK and nothing since, so that only a response shows that others get through
 * survey.count stays 0 if the kernel refuses.
 */
void survey_ask(struct survey *survey, const struct path *own, bool whole);

/* The result of the probes on a connection's own path. */
enum survey_answer {
	SURVEY_PENDING, /* no answer is due yet */
	SURVEY_SILENT,  /* none came, or a reset */
	SURVEY_ANSWERS,
};

/* survey_answer() - look at the probes on the own path. Notes an answer. */
enum survey_answer survey_answer(struct survey *survey, int64_t now);

/* survey_try() - begin a trial: test whether a failed path works again, after survey_reset(). Returns false if it can't send a probe. */
bool survey_try(struct survey *survey, const struct path *path);

/*
 * survey_trial_ends() - look at a trial
 * Returns false if it continues. Otherwise notes the result, and sets @works if the path counts as working now.
 */
bool survey_trial_ends(struct survey *survey, bool *works);

/*
 * trials_start() - start the trials of failed paths that are due, in a separate process
 * A launcher calls it before it executes the program. The process is nobody's child, has no descriptors of the caller, and ends after
 * about a second; its results are in the user's cache. It leaves out converters whose names nobody has resolved yet. Does nothing if the
 * caller would adopt the orphan: as process 1, or by PR_SET_CHILD_SUBREAPER.
 */
void trials_start(const struct settings *settings);

#endif
