/* SPDX-License-Identifier: BSD-3-Clause */
/* pause.h - act while no thread of a program waits in poll(2) or select(2) */
#ifndef SUPERVISE_PAUSE_H
#define SUPERVISE_PAUSE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * pause_and_act() - call @act while those threads of the process of @tid stand still that wait for events
 * They go on as if nothing had happened: poll(2) and select(2) begin anew, with the time that was left (ptrace(2), signal(7)). A thread
 * that can't be stopped, since somebody traces it already say, isn't. @act runs in a thread of its own, for which the caller waits.
 * Returns what it has returned.
 */
bool pause_and_act(pid_t tid, bool (*act)(void *context), void *context);

#endif
