/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - epoll registrations of sockets whose connection is pending */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include "shim/socket/conn.h"

/* Has conn.c tell of closed descriptors. Once, before conns are made. */
void watch_init(void);

/*
 * watch_control() - epoll_ctl(2) on a socket in CONN_IDLE or PHASES_ATTENTIVE
 * Notes the registration, so that it can be masked for as long as the connection
 * is pending. Same return value and errno as epoll_ctl().
 */
int watch_control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event);

/*
 * watch_adopt() - note and mask a registration that was made past the hooks, and is as @event says
 * Returns whether @conn was pending and the registration is now masked.
 */
bool watch_adopt(struct conn *conn, int epfd, int fd, struct epoll_event *event);

/*
 * watch_mask() - have the kernel report, while @conn is pending, only what the shim waits for
 * That is EPOLLIN, level-triggered, for the response, and EPOLLOUT while there is something to be done at the
 * SYN+ACK (dial_wants_output()). The registered data stays the application's. @conn is claimed, as for all below
 * that change registrations.
 */
void watch_mask(struct conn *conn);

/*
 * watch_restore() - register what the application wanted, since the connection is settled
 * EPOLL_CTL_MOD makes the kernel look again, so that no edge is missed. The registrations are forgotten.
 */
void watch_restore(struct conn *conn);

/*
 * watch_fail() - watch_restore() of a connection that has failed
 * One-shot registrations are still known until watch_tell(): only the kernel makes sure that just one of several threads gets
 * the event, and it knows nothing of the error (watch_found.failed).
 */
void watch_fail(struct conn *conn);

/* The application is told of the failure of @conn by an event of the one-shot registration of @fd in @epfd: it's forgotten. */
void watch_tell(struct conn *conn, int epfd, int fd);

/* watch_forget() - know nothing of the registrations any more, and leave them as they are: they have gone, or are another process's */
void watch_forget(struct conn *conn);

/*
 * watch_show() - register what the application wanted, since the server was reached, but go on looking at events
 * The response is still to come and is no input to the application, so that watch_find() goes on finding the registrations.
 */
void watch_show(struct conn *conn);

/*
 * watch_unmask() - register what the application wanted, since no connection was begun
 * Unlike after watch_restore() the registrations are still known, so that they follow if the socket is replaced later.
 */
void watch_unmask(struct conn *conn);

/* Has the kernel report @fd in @epfd anew, registered for @event as before. */
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
	WATCH_NONE,         /* no pending or confirmed socket's, nor a failed one's that isn't told */
	WATCH_PERHAPS_OURS, /* the same data, but the kernel doesn't say whether the same instance */
	WATCH_OURS,
};

/* A pending, confirmed or failed conn, and the descriptor and events that the application registered it with. */
struct watch_found {
	enum watch_owner owner;
	struct conn *conn; /* NULL if WATCH_NONE */
	int fd;
	uint32_t events;
	bool failed; /* what is left is a report of the failure: watch_fail() */
};

/* watch_find() - whose is an event that @epfd returned with @data? */
struct watch_found watch_find(int epfd, epoll_data_t data);

/*
 * watch_arm() - masks of one-shot registrations with this @data may have fired, and are to be in force while their conns are pending
 * @conn: the one that watch_find() has found, which needn't be the only one. Nothing is claimed.
 */
void watch_arm(struct conn *conn, epoll_data_t data);

/* May a wait in @epfd (-1: any other) be one for @conn? Also if no registration of it was seen. */
bool watch_may_be_in(const struct conn *conn, int epfd);

/* Was any registration of @conn seen? */
bool watch_any(const struct conn *conn);

#endif
