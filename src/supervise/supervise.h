/* SPDX-License-Identifier: BSD-3-Clause */
/* supervise.h - runs a program whose connections a supervisor converts */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "client/settings.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

struct supervise_command {
	const char *file; /* as for execvp(3), like @argv; a path, if @binary */
	bool binary;      /* the file isn't a script: if the kernel can't run it, no shell may read it */
	char *const *argv;
	const char *otherwise; /* the user's alternative if we can't supervise the program, as the end of a sentence */
};

/* The exit statuses of supervise() itself: env(1)'s, and so convertize's. */
enum { SUPERVISE_NOT_RUN = 125, SUPERVISE_CANNOT_RUN = 126, SUPERVISE_NOT_FOUND = 127 };

/*
 * supervise() - run a command, and wait for it
 * @settings and @command must stay. Ends this process as the program ends: with its exit status, or by its signal. Returns only if the
 * program can't be run: the exit status for convertize, after it has said why.
 */
int supervise(const struct settings *settings, const struct supervise_command *command);

/* Reports that execvp(3) of @command failed with the positive errno @error. Returns the exit status. */
int supervise_exec_failed(const char *command, int error);

/* Does a supervisor of another convertize answer this process's calls already? */
bool supervise_is_nested(void);

/* Closes our copies of the program's standard descriptors: a reader of its output waits until the last writer has closed it. */
void supervise_close_standard(void);

/* Closes our copies of all other descriptors but the @count of @keep: pipes, locked files and listening sockets of the program. */
void supervise_close_others(const int keep[], size_t count);

/* Leaves the program's directory, which may be on a file system that somebody wants to unmount. */
void supervise_leave_directory(void);

/* The state that convertize inherits and changes for its own processes. supervise_restore() gives it to the program as it was. */
struct supervise_inherited {
	sigset_t mask;
	struct sigaction children; /* of SIGCHLD, which may be ignored: then nobody could wait for a child */
	struct itimerval timer;    /* of alarm(2), which an exec() keeps and a fork() doesn't */
};

/* Restores all that in this process. The timer may end it. */
void supervise_restore(const struct supervise_inherited *inherited);

/* --- supervisor.c: the process that starts the program, and answers its calls until the last program has ended --- */

/* The messages between the supervisor and the front, one each on a SOCK_SEQPACKET socket. All but the last are the supervisor's. */
enum supervisor_news {
	SUPERVISOR_FAILED,  /* the program wasn't started, and the problem was reported; @value: the exit status */
	SUPERVISOR_PREPARED, /* the first message, if all is well; @value: the process ID that the program will have */
	SUPERVISOR_STARTED, /* the second one */
	SUPERVISOR_STOPPED, /* the program has stopped; @value: by which signal */
	SUPERVISOR_EXITED,  /* @value: its exit status */
	SUPERVISOR_KILLED,  /* @value: the signal */
	SUPERVISOR_SIGNAL,  /* from the front: send the program the signal @value */
};

struct supervisor_message {
	enum supervisor_news news;
	int value;
	bool last; /* EXITED, KILLED: no other program is left */
};

/*
 * supervisor_run() - start the program of @command under supervision, report to @front, answer its calls and its children's
 * The caller has blocked all signals; the program gets @inherited. Never returns.
 */
_Noreturn void supervisor_run(const struct settings *settings, const struct supervise_command *command, int front,
			      const struct supervise_inherited *inherited);

#endif
