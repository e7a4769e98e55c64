/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - the state of the kernel that the path service wants, and the operations that lead there (no I/O)
 *
 * Two steps: the wanted state (wanted.c, from the host, the user's choice and the memory), and its difference from the kernel's
 * state (difference.c), a list of operations.
 */
#ifndef PATHS_PLAN_H
#define PATHS_PLAN_H

#include "host/host_model.h"
#include "host/lookup.h"
#include "paths/traffic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- the memory --- */

/*
 * The memory (memory.c) is a file of all that the path manager has made, so that after a kill the next one recognizes and removes it.
 * Routes and rules carry our number (HOST_PROTOCOL_OURS). Endpoints and limits have no room for such a mark: we write them to a file,
 * one for each network namespace, before we change them. A restart of the machine removes both them and the file.
 */
#define PATHS_MEMORY_DIRECTORY "/run/convertize"
#define PATHS_MEMORY_PATH_MAX 256

struct paths_memory_endpoint {
	uint8_t id;
	unsigned int index;
	union sockaddr_ip address;
	int64_t since; /* seconds of CLOCK_REALTIME */
};

struct paths_memory {
	struct paths_memory_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	uint32_t table_first, table_last;      /* 0: the file has none */
	unsigned int limit_before, limit_set;  /* of subflows; limit_set is 0 if we didn't change it */
};

/* Returns the entry of an endpoint, whose flags may have changed; NULL: it isn't ours. */
const struct paths_memory_endpoint *paths_memory_find(const struct paths_memory *memory,
						      const struct mptcp_endpoint *endpoint);

/* Marks the endpoints of a host that are ours, and forgets entries without an endpoint: a later one may be somebody else's. */
void paths_memory_mark(struct paths_memory *memory, struct endpoints *endpoints);

/* Adds an endpoint, in place of one with the same ID. */
void paths_memory_add(struct paths_memory *memory, const struct paths_memory_endpoint *endpoint);
void paths_memory_remove(struct paths_memory *memory, uint8_t id);

/* Parses the text of the file, without I/O. Skips lines that it doesn't understand. Overwrites @text. */
void paths_memory_parse(struct paths_memory *out, char *text);

/* Writes the text of the file. Returns its length, which is less than @size, or -ENOSPC. */
ssize_t paths_memory_format(const struct paths_memory *memory, char *out, size_t size);

/* Reads the file of this network namespace. A missing file is an empty one. Returns 0 or -errno. */
int paths_memory_load(struct paths_memory *out);

/* Replaces the whole file, or removes it if @memory is empty. Returns 0 or -errno. */
int paths_memory_save(const struct paths_memory *memory);

/*
 * paths_memory_lock() - become the only path manager of this network namespace, until paths_memory_unlock()
 * Makes the directory, and removes the files of namespaces that no longer exist. No other user can take the lock. Returns a descriptor, or
 * -errno: -EWOULDBLOCK if another manager runs.
 */
int paths_memory_lock(void);
void paths_memory_unlock(int fd);

/* Does a path manager run in this network namespace? */
bool paths_memory_is_locked(void);

/* Returns the path of the file, for messages. */
const char *paths_memory_path(char path[static PATHS_MEMORY_PATH_MAX]);

/* --- the choice --- */

#define PATHS_TABLE_FIRST 8803
#define PATHS_TABLE_LAST 8866

struct paths_choice {
	struct network_policy policy; /* may point to @paths; in a copy of this struct, to the original's */
	struct path_preferences paths;
	uint32_t table_first, table_last;
	struct quotas quotas;
	enum quota_state quota_states[QUOTAS_MAX]; /* devices whose quota is used up are in @policy, too */
};

/* The settings; NULL: not set. */
struct paths_texts {
	const char *device, *never, *backup; /* lists of names or patterns */
	const char *paths;                   /* as CONVERT_PATHS; must not contradict the lists */
	const char *tables;                  /* "FIRST-LAST"; by default PATHS_TABLE_FIRST and _LAST */
	const char *beside_vpn;              /* "1" or "0" */
	const char *quota;                   /* as quotas_read() reads it */
};

#define PATHS_PROBLEM_MAX 256

/*
 * paths_choice_read() - read the settings
 * @out points into the texts, which the caller keeps. Returns false with the reason and the remedy in @problem, which begins with
 * the option's name.
 */
bool paths_choice_read(struct paths_choice *out, const struct paths_texts *texts, char problem[static PATHS_PROBLEM_MAX]);

/* --- the wanted state --- */

struct paths_wanted {
	struct host_network *networks; /* allocated */
	size_t count;
	unsigned int limit;       /* of subflows, at least */
	bool may_keep;            /* endpoints of networks that are gone may stay: nobody else keeps them, and there is no VPN */
	bool keeps;               /* no network is left: all endpoints stay (paths_wanted_keeps()) */
	union sockaddr_ip needed[HOST_ENDPOINTS_USED_MAX]; /* endpoints that stay while a connection has no other subflow */
	size_t needed_count;
	struct host_rule exclusions[PATH_EXCLUSIONS_MAX]; /* rules that tell programs of excluded, metered and used-up networks */
	size_t exclusion_count;
	bool ends;                /* the manager ends: keep these for open connections, make nothing, and restore the limit */
};

/*
 * paths_wanted_find() - compute the wanted state; the same input gives the same result
 * Returns 0 or -ENOMEM. paths_wanted_fini() frees @out.
 */
int paths_wanted_find(struct paths_wanted *out, const struct host *host, const struct paths_choice *choice,
		      const struct paths_memory *memory);
void paths_wanted_fini(struct paths_wanted *wanted);

/* Returns the used network with this address; NULL: there is none. */
const struct host_network *paths_wanted_used(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Is the address's network gone by itself, or the address replaced by another one of its device, and not excluded by a setting? */
bool paths_wanted_is_outage(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Does a connection need the endpoint of this address, and the rule, until it has another established subflow? */
bool paths_wanted_needs(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/*
 * Does an endpoint of ours stay though its network is gone? It does if no network is left: no RM_ADDR could reach the peers, so they would
 * keep the old subflows, and refuse new ones as too many. It also stays while a connection has its last subflow there: without that the
 * connection would end, or stall until the network is back.
 */
bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address);

/* Did we make this route? */
bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory);

/* Did we make this rule about an address? */
bool paths_wanted_is_own_rule(const struct host_rule *rule, const struct paths_choice *choice, const struct paths_memory *memory);

/* --- operations --- */

enum paths_operation_kind {
	PATHS_LIMIT_SET,
	PATHS_ROUTE_ADD,
	PATHS_RULE_ADD,
	PATHS_ENDPOINT_ADD,
	PATHS_ENDPOINT_CHANGE,
	PATHS_ENDPOINT_DELETE,
	PATHS_RULE_DELETE,
	PATHS_ROUTE_DELETE,
};

/* Of our last rule for an address: before the main table's, after more specific ones of the administrator. Two precede it: difference.c. */
#define PATHS_RULE_PRIORITY 8803

struct paths_operation {
	enum paths_operation_kind kind;
	char device[IF_NAMESIZE];  /* name of the route's or the endpoint's device, for the command */
	struct host_route route;
	struct host_rule rule;     /* for packets from an address, or about an excluded device */
	struct mptcp_endpoint endpoint;
	unsigned int limit;
};

#define PATHS_OPERATIONS_MAX 512

struct paths_operations {
	struct paths_operation list[PATHS_OPERATIONS_MAX];
	size_t count; /* the next look finds the operations that don't fit */
};

/* Returns the flags that the network's endpoint should have. */
uint32_t paths_endpoint_flags(const struct host_network *network);

/*
 * paths_difference_find() - compute the operations, in an order that never leaves the host without a path that it could have
 * @wanted: NULL: nothing is wanted; the operations remove all that we made
 */
void paths_difference_find(struct paths_operations *out, const struct paths_wanted *wanted, const struct host *host,
			   const struct paths_choice *choice, const struct paths_memory *memory);

#define PATHS_COMMAND_MAX 256

/* Formats an operation as the command of ip(8) that does the same. Returns @buf. */
const char *paths_operation_format(const struct paths_operation *operation, char buf[static PATHS_COMMAND_MAX]);

/* --- with the kernel --- */

/*
 * paths_host_read() (mend.c) - read this host as it is now, for programs other than the service
 * With its managers, and its endpoints marked by the memory; counts all as somebody else's if that can't be read. Returns as host_read().
 */
int paths_host_read(struct host *out, struct paths_memory *memory);

enum paths_task {
	PATHS_TASK_MANAGE, /* run until a signal comes, then remove all that we made */
	PATHS_TASK_ONCE,   /* make the endpoints, rules and tables, and leave them */
	PATHS_TASK_REMOVE, /* remove all that another manager left */
};

/* paths_manage() (manage.c) - do the task; returns an exit status: 0, or 1 after reporting the failure */
int paths_manage(const struct paths_choice *choice, enum paths_task task, bool dry_run);

#endif
