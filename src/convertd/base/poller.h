/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.h - edge-triggered events of sockets that are registered once, until they are closed; belongs to one thread */
#ifndef CONVERTD_POLLER_H
#define CONVERTD_POLLER_H

#include <stdint.h>

struct event_base;
struct poller;

/* No registration. */
#define POLLER_NONE (-1)

/* Called for a socket. @events: of epoll_ctl(2): EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLERR, EPOLLHUP */
typedef void poller_callback(void *arg, uint32_t events);

/* Returns a poller whose callbacks are called by the loop of @base, or NULL with errno set. */
struct poller *poller_create(struct event_base *base);

/* Nothing may be registered any more, or its owner doesn't care. NULL is fine. */
void poller_destroy(struct poller *poller);

/*
 * poller_add() - register a socket for all that may ever be asked, edge-triggered
 * The registration raises an event of its own, which says how the socket is then.
 * Returns the registration, which is >= 0, or -errno.
 */
int poller_add(struct poller *poller, int fd, poller_callback *callback, void *arg);

/* Has another owner of the socket be told of its events. What the first one was told before isn't repeated. */
void poller_hand_over(struct poller *poller, int registration, poller_callback *callback, void *arg);

/* To be called before the socket is closed, which ends the kernel's part. POLLER_NONE is fine. */
void poller_forget(struct poller *poller, int registration);

/* As poller_forget(), for a socket that stays open, or that another process has as well. */
void poller_remove(struct poller *poller, int registration, int fd);

#endif
