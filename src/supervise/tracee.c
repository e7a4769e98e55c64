/* SPDX-License-Identifier: BSD-3-Clause */
/* tracee.c - looks into a supervised program: its memory, its descriptors */
#include "config.h"

#include "supervise/tracee.h"

#include "common/os.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

#define PATH_ROOM 64 /* "/proc/", two numbers, and names in between */

bool tracee_read(pid_t tid, uint64_t address, void *out, size_t len)
{
	struct iovec here = { out, len }, there = { (void *)(uintptr_t)address, len };

	return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

bool tracee_write(pid_t tid, uint64_t address, const void *in, size_t len)
{
	struct iovec here = { (void *)(uintptr_t)in, len }, there = { (void *)(uintptr_t)address, len };

	return process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

/* Opens a file of the thread's directory below /proc. Returns NULL if there is none, or it may not be read. */
static FILE *open_proc(pid_t tid, const char *name)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	return fopen(path, "re");
}

/* Returns the text behind "NAME:" in the first such line of a file of the thread's directory, in @line; or NULL. */
static const char *field_of(pid_t tid, const char *name_of_file, const char *name, char *line, int size)
{
	const size_t len = strlen(name);
	FILE *file = open_proc(tid, name_of_file);
	const char *value = NULL;

	while (file && !value && fgets(line, size, file))
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			value = line + len + 1;
	if (file)
		fclose(file);
	return value;
}

/* Asks for a thread's identity without /proc (Linux 6.13), since /proc formats much else and takes ten times as long. */
static bool identify_by_pidfd(int pidfd, struct tracee_identity *out)
{
	struct info {
		uint64_t mask, control_group;
		uint32_t pid, tgid, ppid, ids[8], exit_code;
	} info = { .mask = 7 }; /* struct pidfd_info, PIDFD_INFO_PID, _CREDS, _CGROUPID: linux/pidfd.h */

	_Static_assert(sizeof(struct info) == 64, "PIDFD_INFO_SIZE_VER0");
	if (pidfd < 0 || ioctl(pidfd, _IOWR(0xff, 11, struct info), &info) != 0 || (info.mask & 3) != 3 || !info.tgid)
		return false;
	*out = (struct tracee_identity){
		.process = (pid_t)info.tgid,
		.uid = info.ids[6], /* the file system's, as in /proc */
		.gid = info.ids[7],
		.control_group = info.mask & 4 ? info.control_group : 0,
	};
	return true;
}

/* Returns the last number in a line of the thread's status; @fallback if there is none. */
static long last_number(pid_t tid, const char *name, long fallback)
{
	char line[4096], *at;
	const char *value = field_of(tid, "status", name, line, sizeof(line));

	while (value && *(value += strspn(value, " \t\n"))) {
		fallback = strtol(value, &at, 10);
		value = at == value ? NULL : at;
	}
	return fallback;
}

void tracee_identify(pid_t tid, struct tracee_identity *out)
{
	static int own = -1; /* kept open */
	const bool self = tid == getpid();
	const int pidfd = self && own >= 0 ? own : (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
	const bool told = identify_by_pidfd(pidfd, out);

	if (self)
		own = pidfd;
	else if (pidfd >= 0)
		close(pidfd);
	if (told)
		return;
	*out = (struct tracee_identity){
		.process = (pid_t)last_number(tid, "Tgid", tid),
		.uid = (uid_t)last_number(tid, "Uid", -1),
		.gid = (gid_t)last_number(tid, "Gid", -1),
	};
}

pid_t tracee_process(pid_t tid)
{
	struct tracee_identity identity;

	tracee_identify(tid, &identity);
	return identity.process;
}

long tracee_number(pid_t tid, const char *name)
{
	return last_number(tid, name, -1);
}

int tracee_groups(pid_t tid, gid_t *groups, int max)
{
	char line[4096], *at;
	const char *value = field_of(tid, "status", "Groups", line, sizeof(line));
	int count = 0;

	if (!value || !strchr(value, '\n'))
		return -1;
	while (*(value += strspn(value, " \t\n")) && count < max) {
		groups[count++] = (gid_t)strtoul(value, &at, 10);
		value = at;
	}
	return *value ? -1 : count;
}

ssize_t tracee_text(pid_t tid, const char *name, char *text, size_t size)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	return file_read_text(path, text, size);
}

/* The state and numbers follow the name, which may contain any character. */
bool tracee_started(pid_t pid, uint64_t *ticks, pid_t *parent)
{
	char text[1024];
	const char *name_end = tracee_text(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	return name_end && sscanf(name_end, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
				  parent, ticks) == 2;
}

/* A thread may have a descriptor table of its own (without CLONE_FILES), so we ask the thread itself where Linux can (6.9). */
int tracee_get_fd(pid_t tid, int fd)
{
	long pidfd = syscall(SYS_pidfd_open, tid, PIDFD_THREAD), got;
	int error;

	if (pidfd < 0 && errno == EINVAL)
		pidfd = syscall(SYS_pidfd_open, tracee_process(tid), 0);
	if (pidfd < 0)
		return -errno;
	got = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	error = errno;
	close((int)pidfd);
	return got < 0 ? -error : (int)got;
}

bool tracee_is_cloexec(pid_t tid, int fd)
{
	char name[PATH_ROOM / 2], line[128];
	const char *value;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	value = field_of(tid, name, "flags", line, sizeof(line));
	return value && strtoul(value, NULL, 8) & O_CLOEXEC;
}

bool tracee_is_accessible(pid_t tid)
{
	static struct stat own;
	struct stat other;
	char path[PATH_ROOM];

	if (!own.st_ino && stat("/proc/self/ns/net", &own) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)tid);
	return stat(path, &other) == 0 && other.st_ino == own.st_ino && other.st_dev == own.st_dev;
}

/* The link count of /proc/PID/task is two plus the number of threads. */
bool tracee_has_threads(pid_t tid)
{
	struct stat threads;
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)tid);
	return stat(path, &threads) != 0 || threads.st_nlink > 3;
}

pid_t tracee_name(pid_t tid, char out[static LOG_NAME_MAX])
{
	const pid_t process = tracee_process(tid);

	if (tracee_text(process, "comm", out, LOG_NAME_MAX) <= 0)
		strcpy(out, "?");
	out[strcspn(out, "\n")] = '\0';
	return process;
}

/* Returns the signals in a line of the thread's status; none if that isn't known. */
static uint64_t signals_of(pid_t tid, const char *name)
{
	char line[128];
	const char *value = field_of(tid, "status", name, line, sizeof(line));

	return value ? strtoull(value, NULL, 16) : 0;
}

/*
 * The kernel gives a signal for the process to its first thread, unless that has blocked it (complete_signal() in the kernel). Then it
 * chooses another thread that hasn't, and nothing tells which.
 */
int tracee_interruption(pid_t tid)
{
	uint64_t own = signals_of(tid, "SigPnd"), shared = signals_of(tid, "ShdPnd"), stopped;
	pid_t process;

	if (!(own | shared))
		return 0;
	stopped = signals_of(tid, "SigBlk") | signals_of(tid, "SigIgn");
	own &= ~stopped;
	shared &= ~stopped;
	process = tracee_process(tid);
	if (own || (shared && process == tid))
		return TRACEE_RESTART;
	return shared & signals_of(tid, "SigCgt") & signals_of(process, "SigBlk") ? EINTR : 0;
}

long tracee_call(pid_t tid)
{
	char text[256];
	long number;

	return tracee_text(tid, "syscall", text, sizeof(text)) > 0 && sscanf(text, "%ld", &number) == 1 ? number : -1;
}

/*
 * The state follows the name, which may contain any character. A thread whose call the supervisor hasn't received yet sleeps the same way;
 * if the kernel shows in which of its functions (wchan), that name contains "seccomp".
 */
bool tracee_may_stop(pid_t tid)
{
	char line[256];
	const char *name_end = tracee_text(tid, "stat", line, sizeof(line)) > 0 ? strrchr(line, ')') : NULL;

	if (!name_end)
		return false;
	return strncmp(name_end, ") R", 3) == 0 ||
	       (strncmp(name_end, ") S", 3) == 0 && !(tracee_text(tid, "wchan", line, sizeof(line)) > 0 && strstr(line, "seccomp")));
}

/* Calls @found for each of the numbers in a directory below /proc. */
static void each_number(const char *path, bool (*found)(void *context, pid_t number), void *context)
{
	struct dirent *entry;
	DIR *directory;
	bool more = true;

	directory = opendir(path);
	if (!directory)
		return;
	while (more && (entry = readdir(directory)))
		if (isdigit((unsigned char)*entry->d_name))
			more = found(context, (pid_t)strtol(entry->d_name, NULL, 10));
	closedir(directory);
}

void tracee_each_process(bool (*found)(void *context, pid_t process), void *context)
{
	each_number("/proc", found, context);
}

void tracee_each_thread(pid_t tid, bool (*found)(void *context, pid_t thread), void *context)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)tid);
	each_number(path, found, context);
}

void tracee_each_fd(pid_t tid, bool (*found)(void *context, int fd, const char *target), void *context)
{
	char path[PATH_ROOM], target[PATH_MAX];
	struct dirent *entry;
	DIR *directory;
	bool more = true;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)tid);
	directory = opendir(path);
	if (!directory)
		return;
	while (more && (entry = readdir(directory))) {
		ssize_t len;

		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		len = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		more = found(context, (int)strtol(entry->d_name, NULL, 10), target);
	}
	closedir(directory);
}

void tracee_each_watch(pid_t tid, int epoll, bool (*found)(void *context, const struct tracee_watch *watch), void *context)
{
	char name[PATH_ROOM / 2], line[256];
	struct tracee_watch watch;
	bool more = true;
	FILE *file;

	snprintf(name, sizeof(name), "fdinfo/%d", epoll);
	file = open_proc(tid, name);
	if (!file)
		return;
	while (more && fgets(line, sizeof(line), file))
		if (sscanf(line, "tfd: %d events: %" SCNx32 " data: %" SCNx64 " pos:%*s ino:%" SCNx64, &watch.fd, &watch.events,
			   &watch.data, &watch.inode) == 4)
			more = found(context, &watch);
	fclose(file);
}
