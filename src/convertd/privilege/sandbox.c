/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sandbox.c - restricts what a process of convertd can reach, in case an attacker takes it over
 *
 * Landlock restricts files. The settings' files are mostly replaced by new ones rather than written in place, so the
 * rules allow a reload to read their directories, with everything below. If a reload names a file or socket in another
 * directory, that one can neither be read nor be made until convertd is started anew. Besides, convertd may read
 * /proc/sys/net, /proc/self and /etc/machine-id. It can write and execute nothing; it can only make and remove the Unix
 * sockets of --metrics. The system calls are restricted by syscall_filter.c.
 *
 * The constants of the kernel's interface are defined here, since its header may be older or newer than the kernel.
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

/* These numbers are the same on all architectures but alpha. */
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
/* The number of file rights in each version of the interface, which is the index; the first Linux with some of them. */
static const unsigned char fs_rights[] = { 0, 13 /* 5.13 */, 14, 15, 15, 16 /* 6.10 */ };

/* Since version 6 (Linux 6.12) a process can be kept from abstract sockets of, and signals to, processes outside its rules. */
#define SCOPE_VERSION 6
#define SCOPE_ABSTRACT_SOCKETS 1u
#define SCOPE_SIGNALS 2u

#ifdef WITH_SANITIZERS
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static bool denies_files; /* Landlock is in force; written before there are threads */

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
	/* A daemon in "/" keeps no file system from being unmounted and holds no removed directory. */
	if (getcwd(directory, sizeof(directory)) && stat("/", &st) == 0) {
		textfile_start_from(directory);
		if (chdir("/") < 0)
			log_warning("\"/\" can't be entered: %s", strerror(errno));
	}
	umask(umask(0) | (S_IWGRP | S_IWOTH));
}

/* ----- files ----- */

/* Adds a rule for @path with everything below it; a path that doesn't exist needs none. Returns 0 or -errno. */
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
	/* A rule for "/" would allow every file, so a file directly in it has a rule of its own, which ends when it is replaced. */
	return strcmp(directory, "/") == 0 && rights == FS_READ_FILE ?
		       allow(ruleset, path, rights) :
		       allow(ruleset, directory, rights);
}

/* Allows reading the directory that is named and, as the file may be a symbolic link, the directory that it leads to. */
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

/* Allows making and removing the Unix sockets at which HTTP is answered, since a reload may change them. */
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
		error = allow(ruleset, "/proc/self", FS_READ_FILE | FS_READ_DIR);
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

/* Returns 0 or -errno: -ENOSYS where the kernel has no Landlock, -EOPNOTSUPP where it is switched off. */
static int restrict_files(const struct settings *settings, enum syscall_filter_role role)
{
	size_t known = sizeof(fs_rights) / sizeof(fs_rights[0]) - 1;
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset_attr attr = { 0 };
	int ruleset, error;

	if (version < 0)
		return -errno;
	attr.handled_fs = (1ull << fs_rights[(size_t)version < known ? (size_t)version : known]) - 1;
	/* Only the serving process: the main one signals it, and the service manager's socket may be an abstract one. */
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

/* ----- the whole sandbox ----- */

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

/* Warns of what couldn't be restricted; the caller sees to it that only one process does. @files, @filter: 0 or -errno */
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
	/* Keys and cookies must get neither into core files nor to debuggers of the same user. */
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
