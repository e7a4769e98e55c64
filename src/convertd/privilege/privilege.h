/* SPDX-License-Identifier: BSD-3-Clause */
/* privilege.h - the rights of each process of convertd, and the process that resets the connections of a convertd that was killed */
#ifndef CONVERTD_PRIVILEGE_H
#define CONVERTD_PRIVILEGE_H

#include "common/os.h"
#include "common/problems.h"

#include <linux/capability.h>
#include <stdbool.h>

struct event;
struct event_base;
struct convertd_settings;

/* ----- users and capabilities: privileges.c ----- */

/*
 * privileges_drop() - become --user, keeping the capabilities that @settings need
 * Call it before any thread is started, as each thread has its own capabilities. It sets no_new_privs, so that no
 * program that the process executes regains rights, and warns of files that a reload couldn't read any more. Returns
 * false after adding the error to @problems.
 */
bool privileges_drop(const struct convertd_settings *settings, struct problems *problems);

/*
 * The capabilities of the main process: CAP_NET_ADMIN for nftables, netfilter queues, IP_TRANSPARENT and restricted
 * congestion controls; CAP_NET_BIND_SERVICE for ports below 1024.
 */
#define CAPABILITIES_OF_WARDEN \
	(CAPABILITIES_BIT(CAP_NET_ADMIN) | CAPABILITIES_BIT(CAP_NET_BIND_SERVICE))

/* ----- the restrictions of a process, in case an attacker takes it over: sandbox.c ----- */

/* The processes of convertd, each of which needs other calls. */
enum syscall_filter_role {
	SYSCALL_FILTER_ALONE,  /* the only process, if there are no rights to keep apart */
	SYSCALL_FILTER_WARD,   /* the serving process, which has no rights */
	SYSCALL_FILTER_WARDEN, /* the main process, which keeps the rights */
	SYSCALL_FILTER_SURVIVOR, /* the process that resets connections after the serving one was killed */
};

/*
 * syscall_filter_install() - put the filter in force for this thread and all threads that it starts, until the process ends
 * @role: this process
 * no_new_privs must be set, unless the user is root. Returns 0 or -errno: -ENOSYS if convertd was built without
 * libseccomp, or with sanitizers, which need more system calls.
 */
int syscall_filter_install(enum syscall_filter_role role);

/*
 * sandbox_shed_inherited() - shed properties inherited from the process that started convertd
 * It closes descriptors, and keeps new files from being writable by others.
 * @first_fd: this descriptor and all behind it are closed
 */
void sandbox_shed_inherited(int first_fd);

/*
 * sandbox_enter() - allow this process only the files (Landlock) and system calls that it needs, and no debugger, for good
 * @role: this process
 * no_new_privs must be set, and there must be one thread. The serving process logs one line if restrictions aren't available.
 */
void sandbox_enter(const struct convertd_settings *settings, enum syscall_filter_role role);

/* Tells whether Landlock is in force: then this process may be unable to read a file that its user may read. */
bool sandbox_denies_files(void);

/* ----- the survivor, which resets the connections of a convertd that was killed: survivor.c ----- */

/* The survivor ends at most this many milliseconds after convertd, unless the host is very busy. */
#define SURVIVOR_MAX_MS 3000

/*
 * survivor_start() - start the survivor
 * Call it before there are threads, and with the rights that convertd keeps. The sandbox must not be in force yet, as
 * it forbids new processes; the survivor enters it by itself. Returns a pidfd, readable once the survivor has ended,
 * which the caller owns, or -errno.
 */
int survivor_start(const struct convertd_settings *settings);

/*
 * Tells whether the survivor runs: it resets the connections that this process still has when it ends, so that the
 * process needn't do so itself. Any thread may ask.
 */
bool survivor_is_there(void);

/*
 * survivor_watch() - warn if the survivor ends before convertd does
 * @fd: as returned by survivor_start()
 * Returns the event, which the caller frees, or NULL without memory.
 */
struct event *survivor_watch(struct event_base *base, int fd);

#endif
