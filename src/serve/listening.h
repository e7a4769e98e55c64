/* SPDX-License-Identifier: BSD-3-Clause */
/* listening.h - the sockets on which clients of one address arrive, and each worker's part of them */
#ifndef SERVE_LISTENING_H
#define SERVE_LISTENING_H

#include "common/problems.h"
#include "daemon/listen_address.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* ----- the sockets on which clients of one address arrive ----- */

struct listener;

/* The most connections that wait for accept() on a socket; also the most of them with data in the SYN. */
#define LISTENER_BACKLOG 4096

/* The bit of net.ipv4.tcp_fastopen that lets servers use it (ip-sysctl.rst). */
#define LISTENER_SYSCTL_FASTOPEN 0x2

/* A socket of a listener; one or several workers use it. */
struct listener_socket {
	int fd;            /* -1: closed */
	atomic_uint users; /* acceptors */
};

/* Room for the text of listener_describe(). */
#define LISTENER_DESCRIPTION_MAX (LISTEN_ADDRESS_STRLEN + 40)

/*
 * listener_create() - bind sockets, or duplicate inherited ones, without listening yet
 * @where: :: takes IPv4 as well
 * @mptcp: whether clients may use Multipath TCP
 * @count: the number of sockets that share the address, one at least
 * @inherited, @inherited_count: sockets that listen there already, @count at most, to be duplicated; none: bind new ones
 * Returns NULL after it has added the error to @problems.
 */
struct listener *listener_create(const struct listen_address *where, bool mptcp, size_t count, const int *inherited,
				 size_t inherited_count, struct problems *problems);

/* Closes all sockets that are still open. All acceptors must have been destroyed. NULL is fine. */
void listener_destroy(struct listener *listener);

/*
 * listener_listen() - let clients connect: they are queued until an acceptor takes them
 * Returns false after it has added the error to @problems.
 */
bool listener_listen(struct listener *listener, struct problems *problems);

/* Returns the number of its sockets. */
size_t listener_sockets(const struct listener *listener);

/* Returns the socket from which worker number @worker accepts clients. */
struct listener_socket *listener_socket(struct listener *listener, size_t worker);

/*
 * listener_set_pending() - limit how many requests may be pending; 0: no limit
 * Half as many may be in SYNs whose handshake isn't complete, and each socket gets its share of that half. Beyond it the kernel ignores the
 * data of SYNs, so that forged ones can't take the room of all others.
 */
void listener_set_pending(struct listener *listener, unsigned pending);

/* Sets the congestion control of connections accepted from now on; see congestion_set(). */
void listener_set_congestion(struct listener *listener, const char *name);

/* Returns whether the kernel accepts data in SYNs, by the sockets' options and the present net.ipv4.tcp_fastopen. */
bool listener_takes_syn_data(const struct listener *listener);

/* Writes a description like "[::]%eth0:1234 (MPTCP, Fast Open)" to @buf, and returns it. */
const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX]);

/* ----- acceptors: a worker's part of a listener, which accepts clients ----- */

struct acceptor;
struct worker_context;

/*
 * acceptor_create() - prepare to accept clients of @listener in @worker
 * Any thread may call this: nothing happens before acceptor_start(). Returns NULL if memory is short.
 */
struct acceptor *acceptor_create(struct listener *listener, const struct worker_context *worker);

/* Accepts clients from now on. Call in the worker's thread. */
void acceptor_start(struct acceptor *acceptor);

/*
 * acceptor_destroy() - stop accepting, and close the socket if no other worker uses it
 * Call in the worker's thread, or in any thread if it was never started. Sessions continue.
 * @drain: first accept all clients that have connected already
 */
void acceptor_destroy(struct acceptor *acceptor, bool drain);

#endif
