/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracee.h - looks into a supervised program: its memory, its descriptors
 *
 * All of these need the right to trace the process (ptrace(2)). They work by the number of a thread, which may have ended, and
 * been given to another, while one looks: what was seen counts only if listener_is_waiting() says so afterwards.
 */
#ifndef SUPERVISE_TRACEE_H
#define SUPERVISE_TRACEE_H

#include "client/client_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies @len bytes at @address of the thread's memory. Returns whether all of them could be read; written. */
bool tracee_read(pid_t tid, uint64_t address, void *out, size_t len);
bool tracee_write(pid_t tid, uint64_t address, const void *in, size_t len);

/*
 * Returns a duplicate, to be closed, of the thread's descriptor @fd, or -errno (-EBADF: it has none; -EPERM: it may not be
 * traced).
 */
int tracee_get_fd(pid_t tid, int fd);

/* The number of the thread's process, or its own where that can't be told. */
pid_t tracee_process(pid_t tid);

/* Is the thread's descriptor @fd closed at exec()? */
bool tracee_is_cloexec(pid_t tid, int fd);

/* May the thread be traced, and has it this process's network? */
bool tracee_is_open(pid_t tid);

/* Has the thread's process other threads? */
bool tracee_has_threads(pid_t tid);

/* Writes the name of the thread's process to @out, "?" if it can't be told. Returns the number of the process. */
pid_t tracee_name(pid_t tid, char out[static LOG_NAME_MAX]);

/*
 * tracee_interruption() - does a signal wait for the thread, which would end a call that it waits in?
 * Returns 0 if none does, or the error with which the call is to be answered: TRACEE_RESTART where the signal is sure to be this thread's,
 * so that the kernel acts on it at once and makes the call again, or has it return EINTR, as the signal's disposition says (signal(7));
 * EINTR where another thread may have been chosen for it.
 */
int tracee_interruption(pid_t tid);

#define TRACEE_RESTART 512 /* ERESTARTSYS of the kernel, which programs never see while a signal waits */

/* The number of the system call that the thread waits in, of its own architecture; -1 if it is in none, or that isn't known. */
long tracee_call(pid_t tid);

/* Does the thread sleep so that a signal wakes it? Not while it waits for the supervisor's answer. */
bool tracee_is_interruptible(pid_t tid);

/* Calls @found for each process that /proc has, until it returns false. */
void tracee_each_process(bool (*found)(void *context, pid_t process), void *context);

/* Calls @found for each thread of the thread's process, until it returns false. */
void tracee_each_thread(pid_t tid, bool (*found)(void *context, pid_t thread), void *context);

/* Calls @found for each of the thread's descriptors, with what /proc says that it refers to, until it returns false. */
void tracee_each_fd(pid_t tid, bool (*found)(void *context, int fd, const char *target), void *context);

/* A registration of an epoll instance, as /proc tells of it. */
struct tracee_watch {
	int fd;
	uint32_t events;
	uint64_t data;
	uint64_t inode; /* of the file that is registered */
};

/* Calls @found for each registration in the epoll instance @epoll of the thread, until it returns false. */
void tracee_each_watch(pid_t tid, int epoll, bool (*found)(void *context, const struct tracee_watch *watch), void *context);

#endif
