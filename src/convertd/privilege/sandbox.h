/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.h - restricts what a process of convertd can reach, in case an attacker takes it over */
#ifndef CONVERTD_SANDBOX_H
#define CONVERTD_SANDBOX_H

#include <stdbool.h>

/* ----- forbids system calls that convertd doesn't need ----- */

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

struct settings;

/*
 * sandbox_shed_inherited() - shed properties inherited from the process that started convertd
 * It closes descriptors, changes to "/" (names in the settings keep their meaning, textfile_start_from()), and keeps
 * new files from being writable by others.
 * @first_fd: this descriptor and all behind it are closed
 */
void sandbox_shed_inherited(int first_fd);

/*
 * sandbox_enter() - allow this process only the files (Landlock) and system calls that it needs, and no debugger, for good
 * @role: this process
 * no_new_privs must be set, and there must be one thread. It logs one line with the restrictions that aren't available.
 */
void sandbox_enter(const struct settings *settings, enum syscall_filter_role role);

/* Tells whether Landlock is in force: then this process may be unable to read a file that its user may read. */
bool sandbox_denies_files(void);

#endif
