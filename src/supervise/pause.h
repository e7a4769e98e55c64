/* SPDX-License-Identifier: BSD-3-Clause */
/* pause.h - stops the threads of a program that wait for a socket */
#ifndef SUPERVISE_PAUSE_H
#define SUPERVISE_PAUSE_H

#include <sys/types.h>

/*
 * pause_process() - stop those threads of @tid's process that wait for a socket, until the calling thread ends
 * Then they continue as if nothing had happened: poll(2) and select(2) restart, with the time that was left (ptrace(2), signal(7)). Threads
 * that can't be stopped, because somebody traces them already say, run on. If a thread leaves its wait just before the stop, its next call
 * restarts, too, on x86-64. Elsewhere epoll_wait(2), and the others that signal(7) says are never restarted, end with EINTR then.
 */
void pause_process(pid_t tid);

#endif
