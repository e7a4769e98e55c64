/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - epoll registrations of sockets whose connection is pending */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include "shim/socket/conn.h"

/* Asks conn.c to report closed descriptors. Call once, before conns are made. */
void watch_init(void);

/*
 * watch_control() - epoll_ctl(2) on a socket in CONN_IDLE or PHASES_HANDLED
 * Notes the registration, so that we can mask it while the connection is pending. Return value and errno as epoll_ctl().
 */
int watch_control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event);

/*
 * watch_mask() - mask the registrations of @conn: while it is pending, the kernel reports only the events that the shim waits for
 * These are EPOLLIN, level-triggered, for the response, and EPOLLOUT while there is something to be done at the SYN+ACK
 * (dial_wants_output()). The registered data stays the application's. The caller has claimed @conn, as for all functions below that change
 * registrations.
 */
void watch_mask(struct conn *conn);

/*
 * watch_restore() - restore the application's events, since the connection is settled
 * EPOLL_CTL_MOD makes the kernel check again, so that no edge is missed. Forgets the registrations.
 */
void watch_restore(struct conn *conn);

/*
 * watch_fail() - watch_restore() for a connection that has failed
 * Keeps one-shot registrations until watch_tell(): only the kernel makes sure that just one of several threads gets the event, and it
 * doesn't know the error (watch_found.failed).
 */
void watch_fail(struct conn *conn);

/* Notes that an event of the one-shot registration of @fd in @epfd has told the application of the failure of @conn. Forgets it. */
void watch_tell(struct conn *conn, int epfd, int fd);

/* watch_forget() - forget the registrations and leave them as they are: they have gone, or are another process's */
void watch_forget(struct conn *conn);

/*
 * watch_show() - restore the application's events, since the server was reached, but keep checking events
 * The response is still to come and is no input to the application, so watch_find() still finds the registrations.
 */
void watch_show(struct conn *conn);

/*
 * watch_unmask() - restore the application's events, since no connection was begun
 * Unlike watch_restore() it keeps the registrations, so that they follow if the socket is replaced later.
 */
void watch_unmask(struct conn *conn);

/* Makes the kernel check the application's registrations again. */
void watch_rearm(struct conn *conn);

/*
 * watch_suspend(), watch_resume() - move registrations while an unconnected socket is replaced by another
 * The first removes the registrations. The second makes them again on the sockets that the descriptors then refer to, and does nothing if
 * they weren't removed. watch_can_suspend() is false if some are unknown, or if the application would notice.
 */
bool watch_can_suspend(const struct conn *conn);
void watch_suspend(struct conn *conn);
void watch_resume(struct conn *conn);

enum watch_owner {
	WATCH_NONE,         /* not of a pending or confirmed socket, nor of a failed one whose failure isn't told */
	WATCH_PERHAPS_OURS, /* the same data, but the kernel doesn't tell whether it is the same instance */
	WATCH_OURS,
};

/* A pending, confirmed or failed conn, and the descriptor and events that the application registered it with. */
struct watch_found {
	enum watch_owner owner;
	struct conn *conn; /* NULL if WATCH_NONE */
	int fd;
	uint32_t events;
	struct conn_watch *watch;
	bool failed; /* only the report of the failure is left: watch_fail() */
};

/* watch_find() - find the conn of an event that @epfd returned with @data */
struct watch_found watch_find(int epfd, epoll_data_t data);

/*
 * watch_arm() - arm again the masks of one-shot registrations with this @data, which may have fired, while their conns are pending
 * @conn: the one that watch_find() has found; there may be others. The caller has claimed none.
 */
void watch_arm(struct conn *conn, epoll_data_t data);

/*
 * watch_fired(), watch_arm_fired() - arm a one-shot registration of a confirmed conn again, which has fired for the response alone
 * Call the first before the step that takes the response off the stream: if the step settles the connection, it arms the registration as
 * the application, perhaps in another thread, wants it by then. The second arms it if the step hasn't. It returns false if the connection
 * had been settled before the first call: then the application gets the event, though there may be no input, and arms it itself.
 */
void watch_fired(struct conn_watch *watch);
bool watch_arm_fired(const struct watch_found *found);

/* May a wait in @epfd (-1: another kind of wait) concern @conn? Also true if we saw no registration of it. */
bool watch_may_be_in(const struct conn *conn, int epfd);

/* Do we know any registration of @conn? */
bool watch_any(const struct conn *conn);

/* --- registrations that were made past the hooks --- */

/*
 * watch_adopt_unseen() - adopt registrations in @epfd of pending sockets that have no known registration
 * Call it before a wait in @epfd while there are such sockets (conn_unseen). From then on we mask and restore these registrations like
 * those that the hook of epoll_ctl() has seen. Without /proc it does nothing. errno stays as it was.
 */
void watch_adopt_unseen(int epfd);

/* --- deadline_timer.c: wakes threads that sleep in an epoll instance already --- */

/* Call once, before conns are made. */
void deadline_timer_init(void);

/* Registers a timer with the deadline of @conn, if any, beside @watch, if the process has several threads. The caller has claimed @conn. */
void deadline_timer_add(struct conn *conn, struct conn_watch *watch);

/* Removes it from the instance of @watch. */
void deadline_timer_remove(struct conn *conn, struct conn_watch *watch);

/*
 * deadline_timer_reported() - tell whether an event of EPOLLIN alone, with the data of @watch, is the timer's
 * Call it before any step of @conn. Returns true once for each deadline that is over, even if another thread has moved it since. If another
 * socket in the instance has the same data, its event may be taken for the timer's, once for each deadline.
 */
bool deadline_timer_reported(struct conn *conn, struct conn_watch *watch);

/* Closes the timer of @conn, which ends its registrations. */
void deadline_timer_close(struct conn *conn);

/* --- registrations.c: reads an epoll instance's registrations from /proc --- */

/* A registration: its descriptor, which may have been closed since, and its events and data. */
struct registration {
	int fd;
	struct epoll_event event;
};

/* Takes a registration; returns whether registrations_visit() shall continue. */
typedef bool (*registration_visitor)(int epfd, const struct registration *found, void *arg);

/*
 * registrations_visit() - call @visit for each registration in the instance @epfd until it returns false
 * Reads /proc/thread-self/fdinfo/<epfd> (proc(5)), without memory of its own. Visits nothing if /proc isn't mounted. Changes errno.
 */
void registrations_visit(int epfd, registration_visitor visit, void *arg);

#endif
