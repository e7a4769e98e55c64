/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sandbox.c - what a process of convertd's can't reach any more, whoever runs in it
 *
 * Files are Landlock's. A reload reads files that are written anew, mostly by putting another one in their place, so it is their
 * directories that may be read, with all below. Of directories that settings name later nothing can be read, nor a socket be
 * made in them, until convertd is started anew. Besides there are what convertd asks of /proc, and the
 * machine's identity. Nothing can be written or executed.
 *
 * The kernel's numbers are written down here: its header is newer in some places than the kernel, and older in others.
 * They don't change (Documentation/userspace-api/landlock.rst).
 */
#include "config.h"

#include "convertd/privilege/sandbox.h"

#include "convertd/config/settings.h"
#include "convertd/base/log.h"
#include "convertd/base/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same for all architectures but alpha. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_SOCK (1ull << 9)
/* How many rights there are since each version of the interface, for which Linux is as the index says. */
static const unsigned char fs_rights[] = { 0, 13 /* 5.13 */, 14, 15, 15, 16 /* 6.10 */ };

/* Version 6, Linux 6.12: no abstract sockets, and no signals, of processes that aren't under these rules. */
#define SCOPE_VERSION 6
#define SCOPE_ABSTRACT_SOCKETS 1u
#define SCOPE_SIGNALS 2u

#ifdef WITH_SANITIZERS
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static bool denies_files; /* set before there are threads */

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

void sandbox_leave_surroundings(int first_fd)
{
	char directory[PATH_MAX];
	struct stat st;

	if (syscall(SYS_close_range, (unsigned)first_fd, ~0u, 0) < 0)
		for (long fd = first_fd; fd < sysconf(_SC_OPEN_MAX); fd++)
			close((int)fd);
	/* None is removed in vain while convertd runs, and no file system can't be unmounted for it. */
	if (getcwd(directory, sizeof(directory)) && stat("/", &st) == 0) {
		textfile_start_from(directory);
		if (chdir("/") < 0)
			log_warning("\"/\" can't be entered: %s", strerror(errno));
	}
	umask(umask(0) | (S_IWGRP | S_IWOTH));
}

/* ----- files ----- */

/* What isn't there can't be reached either. Returns 0 or -errno. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct path_beneath_attr attr = { .allowed = rights,
					  .parent_fd = open(path, O_PATH | O_CLOEXEC) };
	int error = 0;

	if (attr.parent_fd < 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
		error = -errno;
	close(attr.parent_fd);
	return error;
}

static int allow_directory_of(int ruleset, const char *path, uint64_t rights)
{
	char copy[PATH_MAX];
	const char *directory;

	snprintf(copy, sizeof(copy), "%s", path);
	directory = dirname(copy);
	/* Not everything, for a file that is in no directory: only that one, until it is replaced. */
	return strcmp(directory, "/") == 0 && rights == FS_READ_FILE ?
		       allow(ruleset, path, rights) :
		       allow(ruleset, directory, rights);
}

/* The directory that it is in, and the one that it is really in: it may be a link. */
static int allow_file(int ruleset, const struct settings_path *file)
{
	char path[PATH_MAX], real[PATH_MAX];
	int error;

	if (!file->name[0] || !textfile_path(file->name, path))
		return 0;
	error = allow_directory_of(ruleset, path, FS_READ_FILE);
	if (!error && realpath(path, real))
		error = allow_directory_of(ruleset, real, FS_READ_FILE);
	return error;
}

/* Where HTTP is answered at Unix sockets, which come and go with reloads. */
static int allow_sockets(int ruleset, const struct settings *settings)
{
	int error = allow_directory_of(ruleset, SETTINGS_STATUS_DEFAULT, FS_MAKE_SOCK | FS_REMOVE_FILE);

	for (size_t i = 0; i < settings->metrics_count && !error; i++)
		if (settings->metrics[i].path[0])
			error = allow_directory_of(ruleset, settings->metrics[i].path,
						   FS_MAKE_SOCK | FS_REMOVE_FILE);
	return error;
}

static int allow_all(int ruleset, const struct settings *settings, enum syscall_filter_role role)
{
	int error = allow(ruleset, "/proc/sys/net", FS_READ_FILE | FS_READ_DIR);

	if (!error)
		error = allow(ruleset, "/proc/self", FS_READ_FILE);
	if (!error)
		error = allow(ruleset, "/etc/machine-id", FS_READ_FILE);
	if (!error)
		error = allow_file(ruleset, &settings->config);
	if (!error)
		error = allow_file(ruleset, &settings->cookie_key);
	if (!error)
		error = allow_file(ruleset, &settings->cookie_list);
	if (!error && role != SYSCALL_FILTER_WARDEN)
		error = allow_sockets(ruleset, settings);
	return error;
}

/* Returns 0 or -errno: -ENOSYS, or -EOPNOTSUPP, where the kernel hasn't got it, or has it switched off. */
static int restrict_files(const struct settings *settings, enum syscall_filter_role role)
{
	size_t known = sizeof(fs_rights) / sizeof(fs_rights[0]) - 1;
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset_attr attr = { 0 };
	int ruleset, error;

	if (version < 0)
		return -errno;
	attr.handled_fs = (1ull << fs_rights[(size_t)version < known ? (size_t)version : known]) - 1;
	/* The main process signals, and may have to reach a service manager. */
	if (version >= SCOPE_VERSION && role == SYSCALL_FILTER_WARD)
		attr.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr,
			       version >= SCOPE_VERSION ? sizeof(attr) : sizeof(attr.handled_fs), 0);
	if (ruleset < 0)
		return -errno;
	error = allow_all(ruleset, settings, role);
	if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		error = -errno;
	close(ruleset);
	return error;
}

/* ----- all of it ----- */

static const char *why_no_files(int error)
{
	if (error == -ENOSYS)
		return "this kernel has no Landlock (Linux 5.13), or a container's filter forbids it";
	if (error == -EOPNOTSUPP)
		return "Landlock is switched off; add it to the kernel's lsm= parameter";
	return strerror(-error);
}

static const char *why_no_filter(int error)
{
	return error == -ENOSYS ? "built without libseccomp" : strerror(-error);
}

/* One process says it for all. */
static void report(int files, int filter)
{
	if (files && filter)
		log_warning("the sandbox is incomplete: all files can be reached that the user's rights permit (%s), and "
			    "all system calls can be made (%s)",
			    why_no_files(files), why_no_filter(filter));
	else if (files)
		log_warning("the sandbox is incomplete: all files can be reached that the user's rights permit (%s)",
			    why_no_files(files));
	else if (filter)
		log_warning("the sandbox is incomplete: all system calls can be made (%s)",
			    why_no_filter(filter));
}

bool sandbox_denies_files(void)
{
	return denies_files;
}

void sandbox_enter(const struct settings *settings, enum syscall_filter_role role)
{
	int files = 0, filter = 0;

	if (sanitized) {
		log_debug("no sandbox: sanitizers need more");
		return;
	}
	/* Neither files of cores nor debuggers of the same user have keys and cookies for whoever reads them. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		log_warning("the process can't be kept from debuggers: %s", strerror(errno));
	if (!settings->no_landlock) {
		files = restrict_files(settings, role);
		denies_files = !files;
	}
	if (!settings->no_syscall_filter)
		filter = syscall_filter_install(role);
	if (role == SYSCALL_FILTER_ALONE || role == SYSCALL_FILTER_WARD)
		report(files, filter);
}
