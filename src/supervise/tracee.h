/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracee.h - looks into a supervised program: its memory, its descriptors
 *
 * All functions need the right to trace the process (ptrace(2)). They name a thread by its number, and the kernel may give that number to
 * another thread meanwhile: the results count only if listener_is_waiting() is true afterwards.
 */
#ifndef SUPERVISE_TRACEE_H
#define SUPERVISE_TRACEE_H

#include "client/client_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read and write @len bytes at @address of the thread's memory. Return whether all were copied. */
bool tracee_read(pid_t tid, uint64_t address, void *out, size_t len);
bool tracee_write(pid_t tid, uint64_t address, const void *in, size_t len);

/*
 * Returns a duplicate, to be closed, of the thread's descriptor @fd, or -errno (-EBADF: there is none; -EPERM: we may not trace it).
 */
int tracee_get_fd(pid_t tid, int fd);

/* Returns the number of the thread's process, or @tid if that isn't known. */
pid_t tracee_process(pid_t tid);

/* A thread's process, user and group for the file system, which own its sockets, and control group in version 2 (0: unknown). */
struct tracee_identity {
	pid_t process;
	uid_t uid;
	gid_t gid;
	uint64_t control_group;
};

void tracee_identify(pid_t tid, struct tracee_identity *out);

/* Writes the thread's supplementary groups to @groups. Returns their count; -1 if it isn't known, or more than @max. */
int tracee_groups(pid_t tid, gid_t *groups, int max);

/* Returns the last number in the line @name of the thread's status in /proc; -1 if there is none. */
long tracee_number(pid_t tid, const char *name);

/* Reads the beginning of a file of the thread's in /proc, as a string. Returns its length; 0 or less if there is nothing to read. */
ssize_t tracee_text(pid_t tid, const char *name, char *text, size_t size);

/* Reads when the process started, in ticks since the host's start, and its parent. Returns false if it can't read that. */
bool tracee_started(pid_t pid, uint64_t *ticks, pid_t *parent);

/* Returns whether exec() closes the thread's descriptor @fd. */
bool tracee_is_cloexec(pid_t tid, int fd);

/* Returns whether we may trace the thread, and it is in our network namespace. */
bool tracee_is_accessible(pid_t tid);

/* Returns whether the thread's process has other threads. True if we can't see that. */
bool tracee_has_threads(pid_t tid);

/* Writes the name of the thread's process to @out, "?" if it isn't known. Returns the number of the process. */
pid_t tracee_name(pid_t tid, char out[static LOG_NAME_MAX]);

/*
 * tracee_interruption() - see whether a signal is pending that would end the call in which the thread waits
 * Returns 0 if there is none, or the error with which to answer the call. TRACEE_RESTART if the signal is surely for this thread: then the
 * kernel delivers it at once, and restarts the call or lets it return EINTR, as the signal's disposition says (signal(7)). EINTR if the
 * kernel may have chosen another thread.
 */
int tracee_interruption(pid_t tid);

#define TRACEE_RESTART 512 /* ERESTARTSYS of the kernel, which programs never see while a signal waits */

/* Returns the number, on its architecture, of the system call that the thread waits in; -1 if it waits in none, or that isn't known. */
long tracee_call(pid_t tid);

/*
 * Returns whether PTRACE_INTERRUPT stops the thread soon: it runs, waits for a CPU, or sleeps so that a signal wakes it. It does none of
 * these while it waits for the supervisor's answer.
 */
bool tracee_may_stop(pid_t tid);

/* Calls @found for each process in /proc, until it returns false. */
void tracee_each_process(bool (*found)(void *context, pid_t process), void *context);

/* Calls @found for each thread of the thread's process, until it returns false. */
void tracee_each_thread(pid_t tid, bool (*found)(void *context, pid_t thread), void *context);

/* Calls @found for each of the thread's descriptors and its target in /proc, until it returns false. */
void tracee_each_fd(pid_t tid, bool (*found)(void *context, int fd, const char *target), void *context);

/* A registration in an epoll instance, as /proc shows it. */
struct tracee_watch {
	int fd;
	uint32_t events;
	uint64_t data;
	uint64_t inode; /* of the registered file */
};

/* Calls @found for each registration in the epoll instance @epoll of the thread, until it returns false. */
void tracee_each_watch(pid_t tid, int epoll, bool (*found)(void *context, const struct tracee_watch *watch), void *context);

/* --- pause.c --- */

/*
 * pause_process() - stop those threads of @tid's process that wait for a socket, until the calling thread ends
 * Then they continue as if nothing had happened: poll(2) and select(2) restart, with the time that was left (ptrace(2), signal(7)). Threads
 * that somebody traces already run on, as do those that got no CPU to stop on before the time @until (nanoseconds of CLOCK_MONOTONIC).
 * Other calls than these may end with EINTR: pause.c.
 */
void pause_process(pid_t tid, int64_t until);

#endif
