/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor.h - the process that answers for its programs until the last of them has ended */
#ifndef SUPERVISE_SUPERVISOR_H
#define SUPERVISE_SUPERVISOR_H

#include "client/settings.h"
#include "supervise/command.h"

#include <signal.h>
#include <sys/types.h>

/* What the supervisor tells the front of the program, and the front the supervisor: a message each on a SOCK_SEQPACKET socket. */
enum supervisor_news {
	SUPERVISOR_FAILED,  /* the program wasn't started; @value: the exit status. What was wrong has been said */
	SUPERVISOR_PREPARED, /* the first message, if all is well: @value is the process ID that the program will have */
	SUPERVISOR_STARTED, /* the second one */
	SUPERVISOR_STOPPED, /* it has stopped; @value: by which signal */
	SUPERVISOR_EXITED,  /* @value: its exit status */
	SUPERVISOR_KILLED,  /* @value: the signal */
	SUPERVISOR_SIGNAL,  /* from the front: send the signal @value to the program */
};

struct supervisor_message {
	enum supervisor_news news;
	int value;
	bool last; /* EXITED, KILLED: no other program is left */
};

/*
 * supervisor_run() - start the program of @command under supervision, report to @front, answer its calls and its children's
 * All signals are blocked; @mask is the program's. Never returns.
 */
_Noreturn void supervisor_run(const struct settings *settings, const struct supervise_command *command, int front,
			      const sigset_t *mask);

#endif
