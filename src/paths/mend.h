/* SPDX-License-Identifier: BSD-3-Clause */
/* mend.h - inside the service: changes the kernel (apply.c), brings it into the wanted state (mend.c), counts bytes (traffic_keeper.c) */
#ifndef PATHS_MEND_H
#define PATHS_MEND_H

#include "common/netlink.h"
#include "paths/outage.h"
#include "paths/plan.h"

/* --- the kernel --- */

/* A connection to each of the two kernel interfaces. */
struct paths_kernel {
	struct netlink route;   /* rtnetlink(7) */
	struct netlink generic; /* for the path manager of MPTCP, ip-mptcp(8) */
	int mptcp_family;       /* number of that interface's family; or -errno: -ENOENT if the kernel has no MPTCP */
};

/* Opens both interfaces; reading needs no privilege. Returns 0 or -errno; without MPTCP it returns 0, and mptcp_family is negative. */
int paths_kernel_open(struct paths_kernel *kernel);
void paths_kernel_close(struct paths_kernel *kernel);

/*
 * paths_kernel_subflows() - read all subflows of this network namespace, established or with a SYN under way
 * Needs CAP_NET_ADMIN: without it the kernel doesn't tell a subflow's connection. Returns 0 or -errno.
 */
int paths_kernel_subflows(struct paths_subflows *out);

/* Does one operation. Deleting an absent object succeeds. Returns 0 or -errno. */
int paths_kernel_apply(struct paths_kernel *kernel, const struct paths_operation *operation);

/* paths_kernel_watch() - open a socket that becomes readable when something changes; returns it, or -errno */
int paths_kernel_watch(void);

/*
 * paths_kernel_heard() - take all messages from that socket
 * Returns true if a change may alter the wanted endpoints, rules or routes, or if messages were lost because there were too many: the
 * caller then reads the host anew.
 */
bool paths_kernel_heard(int fd);

/* --- mend.c --- */

struct paths_mender {
	struct paths_kernel kernel;
	struct paths_choice choice;
	struct host_managers others;
	int64_t others_at; /* when we last looked for other managers, CLOCK_MONOTONIC in nanoseconds; 0: look again */
	int others_error;  /* 0, or -errno: NetworkManager didn't answer then, and @others has its earlier answer */
	struct paths_memory memory;
	struct paths_wanted wanted; /* the result of the last look */
	bool is_due;                /* fewer connections need networks that are gone: paths_mend() is due */
	bool dry_run;               /* print commands on standard output, and change nothing */
	char problem[PATHS_COMMAND_MAX + 128]; /* the last failure that we printed, so as to print it once */
};

/* Writes a line to standard error, with control characters replaced. */
void paths_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens the kernel's interfaces and reads the memory's file. Returns 0, or -errno after reporting the failure. */
int paths_mender_init(struct paths_mender *mender, const struct paths_choice *choice, bool dry_run);
void paths_mender_fini(struct paths_mender *mender);

/*
 * paths_mend() - read the kernel's state, and do the operations that lead to the wanted one
 * Prints changes since the last time, and failures, on standard error. Returns 0, or -errno if another try may help.
 */
int paths_mend(struct paths_mender *mender);

/*
 * paths_unmend() - remove all that we or an earlier process made, even if the memory can't be saved; returns as paths_mend()
 * @open: all subflows; leaves the networks that carry a connection's last subflow, as few as possible, and remembers them: the next
 *     process takes them over, or removes them. NULL: leave nothing, even if connections end.
 */
int paths_unmend(struct paths_mender *mender, const struct paths_subflows *open);

/*
 * paths_managed_addresses() - list the addresses whose endpoints are ours, as of the last look
 * The preferred networks come first, and last those that are gone and whose endpoints stay. Returns their number.
 */
size_t paths_managed_addresses(const struct paths_mender *mender, struct paths_managed out[static PATHS_OUTAGES_MAX]);

/*
 * paths_renew_endpoints() - delete endpoints, make them as they were, or both, in the order of @renewals; or prompt their subflows
 * Ignores addresses without an endpoint in the memory, or whose network isn't used. Returns as paths_mend().
 */
int paths_renew_endpoints(struct paths_mender *mender, const struct paths_renewal *renewals, size_t count);

/* --- traffic_keeper.c --- */

#define TRAFFIC_LISTS_MAX 2048
#define TRAFFIC_TOKENS_MAX 1024

/* Open Multipath TCP connections that have outlived the network on which they began, by the kernel's tokens for them. */
struct traffic_tokens {
	uint32_t list[TRAFFIC_TOKENS_MAX];
	size_t count;
	bool known; /* false before the first look: an earlier process has counted those */
};

struct traffic_keeper {
	struct traffic traffic;
	const char *own_never, *own_backup; /* the lists of the settings */
	char never[TRAFFIC_LISTS_MAX], backup[TRAFFIC_LISTS_MAX]; /* these, and devices whose quota is used up */
	int64_t look_at, save_at; /* CLOCK_MONOTONIC in ns */
	struct traffic_tokens outlived; /* at the last look */
	bool loaded;              /* we have read the file; until then we don't write it */
	bool keeps;               /* we may write the file: not in a dry run */
	bool told;                /* we have reported that we can't read or write it */
};

/* Reads the file and looks for the first time. The mender's choice points into @keeper from then on. @keeps: write the file */
void traffic_keeper_begin(struct traffic_keeper *keeper, struct paths_mender *mender, bool keeps);

/* Counts, and judges the quotas; call it at look_at. Returns whether the mender's choice has changed: paths_mend() is due. */
bool traffic_keeper_look(struct traffic_keeper *keeper, struct paths_mender *mender);

/* Counts for the last time and writes the file. */
void traffic_keeper_end(struct traffic_keeper *keeper, struct paths_mender *mender);

#endif
