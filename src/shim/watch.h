/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - epoll registrations of sockets whose connection is pending */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include "shim/conn.h"

/*
 * watch_control() - epoll_ctl(2) on a socket in CONN_IDLE or PENDING
 * Notes the registration, so that it can be masked for as long as the connection
 * is pending. Same return value and errno as epoll_ctl().
 */
int watch_control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event);

/*
 * watch_mask() - while @conn is pending, wake its waiters for our own purposes only
 * EPOLLIN, level-triggered: the response; EPOLLOUT too while conn.want_output says that
 * a part of the request is unsent. The registered data stays the application's.
 */
void watch_mask(struct conn *conn);

/*
 * watch_restore() - the connection is settled: register what the application wanted
 * EPOLL_CTL_MOD makes the kernel look again, so that an edge is not missed.
 */
void watch_restore(struct conn *conn);

/* The socket is gone, and its registrations with it. */
void watch_forget(struct conn *conn);

enum watch_owner {
	WATCH_NONE,         /* no pending socket's */
	WATCH_PERHAPS_OURS, /* the same data, but the kernel doesn't say whether the same instance */
	WATCH_OURS,
};

/* A pending conn, and the descriptor and events that the application registered it with. */
struct watch_found {
	enum watch_owner owner;
	struct conn *conn; /* NULL if WATCH_NONE */
	int fd;
	uint32_t events;
};

/* watch_find() - whose is an event that @epfd returned with @data? */
struct watch_found watch_find(int epfd, epoll_data_t data);

/* Was any registration of @conn seen? */
bool watch_any(const struct conn *conn);

#endif
