/* SPDX-License-Identifier: BSD-3-Clause */
/* listening.h - the sockets on which clients of one address arrive, and each worker's part of them */
#ifndef SERVE_LISTENING_H
#define SERVE_LISTENING_H

#include "common/problems.h"
#include "convertd/base/listen_address.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* ----- the sockets on which clients of one address arrive ----- */

struct listener;

/* Connections that wait for accept() on a socket, and those of them that have data in the SYN. */
#define LISTENER_BACKLOG 4096

/* The bit of net.ipv4.tcp_fastopen that lets servers use it (ip-sysctl.rst). */
#define LISTENER_SYSCTL_FASTOPEN 0x2

/* One of its sockets, which one worker has, or several have. */
struct listener_socket {
	int fd;            /* -1: closed */
	atomic_uint users; /* acceptors */
};

/* Room for what listener_describe() prints. */
#define LISTENER_DESCRIPTION_MAX (LISTEN_ADDRESS_STRLEN + 40)

/*
 * listener_create() - bind sockets, or take those that were inherited, without listening yet
 * @where: :: takes IPv4 as well
 * @count: sockets that share the place, one at least
 * @inherited, @inherited_count: sockets that listen there already, @count at most, which are duplicated; none:
 * new ones are bound
 * Returns NULL after telling @problems what went wrong.
 */
struct listener *listener_create(const struct listen_address *where, size_t count,
				 const int *inherited, size_t inherited_count,
				 struct problems *problems);

/* Closes what sockets are still open; its acceptors must have gone. NULL is fine. */
void listener_destroy(struct listener *listener);

/*
 * listener_listen() - let clients connect: they are queued until an acceptor takes them
 * Returns false after telling @problems what went wrong.
 */
bool listener_listen(struct listener *listener, struct problems *problems);

/* How many sockets it has. */
size_t listener_sockets(const struct listener *listener);

/* The socket that worker number @worker takes clients from. */
struct listener_socket *listener_socket(struct listener *listener, size_t worker);

/*
 * listener_set_pending() - how many requests may be pending, 0 for no limit
 * Half as many may be there in SYNs whose handshake isn't complete: beyond it, the kernel leaves
 * SYNs' data out, so that forged ones don't take the place of all others. Each socket has its
 * share of them.
 */
void listener_set_pending(struct listener *listener, unsigned pending);

/* What connections that are accepted from now on send by; see congestion_set(). */
void listener_set_congestion(struct listener *listener, const char *name);

/* Is this what it listens on? Not once an interface has gone and come back as another. */
bool listener_is_at(const struct listener *listener, const struct listen_address *where);

/* Does the kernel give it what SYNs carry, by its options and net.ipv4.tcp_fastopen as that is now? */
bool listener_takes_syn_data(const struct listener *listener);

/* "[::]%eth0:1234 (MPTCP, Fast Open)"; returns @buf. */
const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX]);

/* ----- a worker's part of a listener: takes clients out of a socket's queue ----- */

struct acceptor;
struct listener;
struct worker_context;

/*
 * acceptor_create() - prepare to accept clients of @listener in @worker
 * Any thread may call this: nothing happens before acceptor_start(). Returns NULL without memory.
 */
struct acceptor *acceptor_create(struct listener *listener, const struct worker_context *worker);

/* Accepts from now on. In the worker's thread. */
void acceptor_start(struct acceptor *acceptor);

/*
 * acceptor_destroy() - accept nobody any more, and close the socket if no other worker has it
 * In the worker's thread, or in any if it was never started. Sessions go on.
 * @drain: first accept whoever has connected already
 */
void acceptor_destroy(struct acceptor *acceptor, bool drain);

#endif
