/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.h - reports edge-triggered events of sockets that are registered once, until they are closed; belongs to one thread */
#ifndef DAEMON_POLLER_H
#define DAEMON_POLLER_H

#include <stdint.h>

struct event_base;
struct poller;

/* No registration. */
#define POLLER_NONE (-1)

/* Receives the events of a socket. @events: as in epoll_ctl(2): EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLERR, EPOLLHUP */
typedef void poller_callback(void *arg, uint32_t events);

/* Returns a poller whose callbacks are called by the loop of @base, or NULL with errno set. */
struct poller *poller_create(struct event_base *base);

/* Frees the poller. Sockets may still be registered only if their owners want no more events. NULL is fine. */
void poller_destroy(struct poller *poller);

/*
 * poller_add() - register a socket for all events that anyone may need, edge-triggered
 * The registration raises an event of its own, which shows the socket's present state. Returns the registration,
 * which is >= 0, or -errno.
 */
int poller_add(struct poller *poller, int fd, poller_callback *callback, void *arg);

/* Reports the socket's events to another owner from now on. It doesn't repeat events that the first owner got. */
void poller_hand_over(struct poller *poller, int registration, poller_callback *callback, void *arg);

/* Call it before closing the socket, which ends the kernel's registration. POLLER_NONE is fine. */
void poller_forget(struct poller *poller, int registration);

/* Likewise, for a socket that stays open, or that another process has as well. */
void poller_remove(struct poller *poller, int registration, int fd);

#endif
