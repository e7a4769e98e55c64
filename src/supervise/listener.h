/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - receives the calls that programs have stopped in, and answers them: seccomp_unotify(2) */
#ifndef SUPERVISE_LISTENER_H
#define SUPERVISE_LISTENER_H

#include "supervise/filter.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
 * listener_let_go() - let the kernel run the call as if it had not been stopped
 * The kernel reads arguments in memory again, and they may have changed: only for calls that are harmless with any arguments.
 */
void listener_let_go(int listener, const struct call *call);

/*
 * Answers with a new descriptor of the caller's that refers to the file of @fd. Returns false if the call has ended meanwhile, or after it
 * was answered with an error.
 */
bool listener_answer_fd(int listener, const struct call *call, int fd, bool cloexec);

/* Puts the file of @fd under the caller's descriptor @at. Returns 0 or -errno; the call continues to wait. */
int listener_put_fd(int listener, const struct call *call, int fd, int at, bool cloexec);

#endif
