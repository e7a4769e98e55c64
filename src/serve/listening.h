/* SPDX-License-Identifier: BSD-3-Clause */
/* listening.h - the sockets on which clients of one address arrive, and each worker's part of them */
#ifndef SERVE_LISTENING_H
#define SERVE_LISTENING_H

#include "common/problems.h"
#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct listener;
struct worker_context;
struct workers;

/* The most connections that wait for accept() on a socket; also the most of them with data in the SYN. */
#define LISTENER_BACKLOG 4096

/* The bit of net.ipv4.tcp_fastopen that lets servers use it (ip-sysctl.rst). */
#define LISTENER_SYSCTL_FASTOPEN 0x2

/* Room for the text of listener_describe(). */
#define LISTENER_DESCRIPTION_MAX (LISTEN_ADDRESS_STRLEN + 40)

/*
 * listener_create() - bind sockets, or duplicate inherited ones, without listening yet
 * @where: :: takes IPv4 as well
 * @mptcp: whether clients may use Multipath TCP
 * @workers: each has a socket of its own, which share the address
 * @inherited, @inherited_count: sockets that listen there already, to be duplicated; none: bind new ones
 * Returns NULL after it has added the error to @problems.
 */
struct listener *listener_create(const struct listen_address *where, bool mptcp, const struct workers *workers, const int *inherited,
				 size_t inherited_count, struct problems *problems);

/* Closes all sockets that are still open. Each worker that accepts clients from it must have stopped. NULL is fine. */
void listener_destroy(struct listener *listener);

/*
 * listener_listen() - let clients connect: they are queued until a worker accepts them
 * Returns false after it has added the error to @problems.
 */
bool listener_listen(struct listener *listener, struct problems *problems);

/* Returns the number of its sockets. */
size_t listener_sockets(const struct listener *listener);

/* Returns a socket, which stays the listener's. @index: less than their number */
int listener_socket(const struct listener *listener, size_t index);

/*
 * listener_limit_syn_data() - limit how many SYNs with data may wait for their third ACK, to half of @pending
 * @pending: how many requests may be pending in all; 0: no limit. Each socket gets its share of the half. Beyond it the kernel ignores the
 * data of SYNs, so that forged ones can't take the room of all others.
 */
void listener_limit_syn_data(struct listener *listener, unsigned pending);

/* Sets the congestion control of connections accepted from now on; see congestion_set(). */
void listener_set_congestion(struct listener *listener, const char *name);

/* Returns whether the kernel accepts data in SYNs, by the sockets' options and the present net.ipv4.tcp_fastopen. */
bool listener_takes_syn_data(const struct listener *listener);

/* Writes a description like "[::]%eth0:1234 (MPTCP, Fast Open)" to @buf, and returns it. */
const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX]);

/* Accepts clients from now on. Call in the worker's thread. */
void listener_accept(struct listener *listener, const struct worker_context *worker);

/*
 * listener_stop() - stop accepting in this worker, and close the socket if no other worker uses it
 * Call in the worker's thread. Sessions continue.
 * @drain: first accept all clients that have connected already
 */
void listener_stop(struct listener *listener, const struct worker_context *worker, bool drain);

#endif
