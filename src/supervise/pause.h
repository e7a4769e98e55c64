/* SPDX-License-Identifier: BSD-3-Clause */
/* pause.h - stop those threads of a program that wait for a socket */
#ifndef SUPERVISE_PAUSE_H
#define SUPERVISE_PAUSE_H

#include <sys/types.h>

/*
 * pause_process() - have those threads of the process of @tid stand still that wait for a socket, until the calling thread ends
 * They go on as if nothing had happened: poll(2) and select(2) begin anew, with the time that was left (ptrace(2), signal(7)). A thread
 * that can't be stopped, since somebody traces it already say, isn't. A thread may have left its wait just before it is stopped: then what
 * it does instead goes on, too (on x86-64; elsewhere epoll_wait(2), and what else signal(7) names as never restarted, ends with EINTR then).
 */
void pause_process(pid_t tid);

#endif
