/* SPDX-License-Identifier: BSD-3-Clause */
/* tracee.c - looks into a supervised program: its memory, its descriptors */
#include "config.h"

#include "supervise/tracee.h"

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

/* The value behind "NAME:" in a file of lines, as text in @line; or NULL. */
static const char *field(FILE *file, const char *name, char *line, int size)
{
	size_t len = strlen(name);

	while (fgets(line, size, file))
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1;
	return NULL;
}

pid_t tracee_process(pid_t tid)
{
	FILE *file = open_proc(tid, "status");
	char line[128];
	const char *value;
	pid_t pid = tid;

	if (!file)
		return tid;
	value = field(file, "Tgid", line, sizeof(line));
	if (value)
		pid = (pid_t)strtol(value, NULL, 10);
	fclose(file);
	return pid;
}

/* A thread may have descriptors that its process has not (CLONE_FILES), so that it is asked for itself, where Linux can (6.9). */
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
	bool cloexec = false;
	FILE *file;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	file = open_proc(tid, name);
	if (!file)
		return false;
	value = field(file, "flags", line, sizeof(line));
	if (value)
		cloexec = strtoul(value, NULL, 8) & O_CLOEXEC;
	fclose(file);
	return cloexec;
}

bool tracee_is_open(pid_t tid)
{
	static struct stat own;
	struct stat other;
	char path[PATH_ROOM];

	if (!own.st_ino && stat("/proc/self/ns/net", &own) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)tid);
	return stat(path, &other) == 0 && other.st_ino == own.st_ino && other.st_dev == own.st_dev;
}

pid_t tracee_name(pid_t tid, char out[static TRACEE_NAME_MAX])
{
	pid_t process = tracee_process(tid);
	FILE *file = open_proc(process, "comm");

	if (!file || !fgets(out, TRACEE_NAME_MAX, file))
		strcpy(out, "?");
	out[strcspn(out, "\n")] = '\0';
	if (file)
		fclose(file);
	return process;
}

static uint64_t signal_field(FILE *file, const char *name)
{
	char line[128];
	const char *value;

	rewind(file);
	value = field(file, name, line, sizeof(line));
	return value ? strtoull(value, NULL, 16) : 0;
}

bool tracee_is_called_off(pid_t tid)
{
	static const int giving_up[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM };
	FILE *file = open_proc(tid, "status");
	uint64_t waiting, mask = 0;

	if (!file)
		return false;
	for (size_t i = 0; i < sizeof(giving_up) / sizeof(giving_up[0]); i++)
		mask |= UINT64_C(1) << (giving_up[i] - 1);
	waiting = signal_field(file, "SigPnd") | signal_field(file, "ShdPnd");
	if (waiting & mask)
		waiting &= ~signal_field(file, "SigBlk") & signal_field(file, "SigCgt");
	fclose(file);
	return waiting & mask;
}

long tracee_call(pid_t tid)
{
	FILE *file = open_proc(tid, "syscall");
	long number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
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
