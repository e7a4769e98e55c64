/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - calls that a program has stopped in, and their answers: seccomp_unotify(2) */
#ifndef SUPERVISE_LISTENER_H
#define SUPERVISE_LISTENER_H

#include "supervise/filter.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A call that waits for its answer. */
struct call {
	uint64_t id;    /* of the notification; never used twice by one kernel's filter */
	pid_t tid;      /* the thread that has made it */
	enum filter_call call;
	bool narrow;    /* pointers and sizes in the program's memory have 32 bits */
	uint64_t args[6];
};

/*
 * listener_install() - has all of the calling thread's calls, and those of its children, filtered from now on
 * For a thread without others beside it. Sets no_new_privs. Returns the listener's descriptor, or -errno.
 */
int listener_install(void);

/*
 * Takes the next call; blocks until there is one. Returns 0; -EAGAIN if it is gone already; -ENOTCONN once no process is left;
 * or another -errno.
 */
int listener_receive(int listener, struct call *out);

/* Has the kernel give caller and supervisor the same CPU in turn, where it can (Linux 6.6): neither has to wait for one. */
void listener_take_turns(int listener);

/* Would listener_receive() return at once? */
bool listener_has_more(int listener);

/* Is the call still waiting? Then the thread with that number is the one that made it, and what was read of it was its own. */
bool listener_is_waiting(int listener, const struct call *call);

/* Answers with @value, or with @error (positive) unless that is 0. */
void listener_answer(int listener, const struct call *call, int64_t value, int error);

/*
 * listener_let_go() - the kernel runs the call as if it had not been stopped
 * It reads arguments in memory again, which may have changed: only where that is harmless, whatever they have become.
 */
void listener_let_go(int listener, const struct call *call);

/*
 * Answers with a new descriptor for the caller, which refers to what @fd does here. Returns false if the call has ended
 * meanwhile.
 */
bool listener_answer_fd(int listener, const struct call *call, int fd, bool cloexec);

/* Puts what @fd refers to here under the caller's descriptor @at. Returns 0 or -errno; the call goes on waiting. */
int listener_put_fd(int listener, const struct call *call, int fd, int at, bool cloexec);

#endif
