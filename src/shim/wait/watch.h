/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - epoll registrations of sockets whose connection is pending */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include "shim/socket/conn.h"

/* Has conn.c tell of closed descriptors. Once, before conns are made. */
void watch_init(void);

/*
 * watch_control() - epoll_ctl(2) on a socket in CONN_IDLE or PHASES_UNFINISHED
 * Notes the registration, so that it can be masked for as long as the connection
 * is pending. Same return value and errno as epoll_ctl().
 */
int watch_control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event);

/*
 * watch_adopt() - the same for a registration that was made past the hooks and is as @event says
 * Returns whether @conn was pending and the registration is now masked.
 */
bool watch_adopt(struct conn *conn, int epfd, int fd, struct epoll_event *event);

/*
 * watch_mask() - while @conn is pending, wake its waiters for our own purposes only
 * EPOLLIN, level-triggered: the response; EPOLLOUT too while there is something to be done at the
 * SYN+ACK, conn_wants_output(). The registered data stays the application's.
 */
void watch_mask(struct conn *conn);

/*
 * watch_restore() - the connection is settled: register what the application wanted
 * EPOLL_CTL_MOD makes the kernel look again, so that an edge is not missed.
 */
void watch_restore(struct conn *conn);

/*
 * watch_show() - the server was reached, and the response is still to come
 * As watch_restore(), but watch_find() goes on finding them: the response is no input to the application.
 */
void watch_show(struct conn *conn);

/*
 * watch_unmask() - no connection was begun: the registrations are as the application made them
 * Unlike after watch_restore() they are still known, so that they follow if the socket is replaced once more.
 */
void watch_unmask(struct conn *conn);

/* The kernel is to report @fd in @epfd again, as it was registered: @event. */
void watch_again(int epfd, int fd, struct epoll_event event);

/* Has the kernel look again at registrations as the application made them. */
void watch_rearm(struct conn *conn);

/*
 * watch_suspend(), watch_resume() - around the replacement of a socket that isn't connected by another
 * The first takes the registrations out, the second makes them again on what the descriptors then refer to, and does
 * nothing if they weren't taken out. watch_can_suspend() is false if some are not known, or can't be made again unnoticed.
 */
bool watch_can_suspend(const struct conn *conn);
void watch_suspend(struct conn *conn);
void watch_resume(struct conn *conn);

enum watch_owner {
	WATCH_NONE,         /* no pending or confirmed socket's */
	WATCH_PERHAPS_OURS, /* the same data, but the kernel doesn't say whether the same instance */
	WATCH_OURS,
};

/* A pending or confirmed conn, and the descriptor and events that the application registered it with. */
struct watch_found {
	enum watch_owner owner;
	struct conn *conn; /* NULL if WATCH_NONE */
	int fd;
	uint32_t events;
};

/* watch_find() - whose is an event that @epfd returned with @data? */
struct watch_found watch_find(int epfd, epoll_data_t data);

/* May a wait in @epfd (-1: any other) be one for @conn? Also if no registration of it was seen. */
bool watch_may_be_in(const struct conn *conn, int epfd);

/* Was any registration of @conn seen? */
bool watch_any(const struct conn *conn);

#endif
