/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - which system calls of a program stop, and how the supervisor receives and answers them: seccomp_unotify(2) */
#ifndef SUPERVISE_LISTENER_H
#define SUPERVISE_LISTENER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- the filter: filter.c --- */

/* The calls that the supervisor handles, independent of their numbers on the caller's architecture. */
enum filter_call {
	FILTER_SOCKET,
	FILTER_CONNECT,
	FILTER_GETPEERNAME,
	FILTER_SENDTO,
	FILTER_SENDMSG,
	FILTER_SENDMMSG,
	FILTER_SETSOCKOPT,
	FILTER_GETSOCKOPT,
	FILTER_LISTEN,
	FILTER_SOCKETCALL,     /* i386: the calls above under one number, with their arguments in memory (socketcall(2)) */
	FILTER_SECCOMP,        /* these restrict the program; the kernel runs them after permission_note() */
	FILTER_PRCTL,
	FILTER_LANDLOCK_RULES,
	FILTER_LANDLOCK_RESTRICT,
	FILTER_IO_URING_SETUP, /* the filter answers this one itself */
	FILTER_CALL_COUNT
};

#define FILTER_LENGTH_MAX 768 /* instructions; the kernel takes 4096 */

/*
 * filter_build() - write the filter, for all architectures whose programs this kernel may run
 * Returns its length; 0 on an unknown machine.
 */
size_t filter_build(struct sock_filter out[static FILTER_LENGTH_MAX]);

/*
 * filter_call_of() - identify the call @number of a program with the audit architecture @arch
 * @narrow: set if pointers and sizes in memory have 32 bits. Returns FILTER_CALL_COUNT for a call that the filter doesn't stop.
 */
enum filter_call filter_call_of(uint32_t arch, int number, bool *narrow);

/*
 * Identifies a call by its number in socketcall(2), and sets @count to the count of its arguments. Returns FILTER_CALL_COUNT for a call
 * that the supervisor doesn't handle.
 */
enum filter_call filter_socketcall_of(unsigned int number, int *count);

/* --- the calls: listener.c --- */

/* A call that waits for its answer. */
struct call {
	uint64_t id;    /* of the notification; a filter never uses one twice */
	pid_t tid;      /* the calling thread */
	enum filter_call call;
	bool narrow;    /* pointers and sizes in the program's memory have 32 bits */
	uint64_t args[6];
};

/*
 * listener_install() - filter all calls of the calling thread and of its children from now on
 * The process must have no other threads. Sets no_new_privs. Returns the listener's descriptor, or -errno.
 */
int listener_install(void);

/*
 * Takes the next call; blocks until there is one. Returns 0; -EAGAIN if the call has ended already; -ENOTCONN if no process is left; or
 * another -errno.
 */
int listener_receive(int listener, struct call *out);

/* Lets caller and supervisor take turns on one CPU, where the kernel can (Linux 6.6): so neither waits for a CPU. */
void listener_take_turns(int listener);

/* Returns whether listener_receive() would return at once. */
bool listener_has_more(int listener);

/* Returns whether the call still waits. Then its thread number still belongs to the caller, and all that we read there was the caller's. */
bool listener_is_waiting(int listener, const struct call *call);

/* Answers with @value, or with @error (positive) unless that is 0. */
void listener_answer(int listener, const struct call *call, int64_t value, int error);

/*
 * listener_continue() - let the kernel run the call as if it had not been stopped
 * The kernel reads arguments in memory again, and they may have changed: only for calls that are harmless with any arguments.
 */
void listener_continue(int listener, const struct call *call);

/* Answers with a new descriptor of the caller's that refers to the file of @fd, or with the error if the caller can't have one. */
void listener_answer_fd(int listener, const struct call *call, int fd, bool cloexec);

/* Puts the file of @fd under the caller's descriptor @at. Returns 0 or -errno; the call continues to wait. */
int listener_put_fd(int listener, const struct call *call, int fd, int at, bool cloexec);

#endif
