/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * phase.h - the phases of a connection, and which of them may follow which
 *
 * A phase describes the kernel's work on the socket, the application's view, and the bytes that we must still take off the stream before
 * the application may read:
 *
 *   phase         the kernel has                              the application sees         on the stream for us
 *   ------------  ------------------------------------------  ---------------------------  ----------------------------
 *   FREE          no socket                                   -                            -
 *   IDLE          a socket that isn't connected               the kernel's answers         nothing
 *   STARTING      its SYN to be sent (only while claimed)     connect() hasn't returned    nothing
 *   DEFERRED      a SYN that waits for its first data         connected                    nothing
 *   RESOLVING     a socket that isn't connected               SYN_SENT, or connected *     nothing
 *   SYN_SENT      a SYN to a converter, or its SYN+ACK, and   SYN_SENT, or connected *     the response, when it comes
 *                 we have work to do as soon as the
 *                 socket is writable
 *   ASKED         the whole request                           SYN_SENT, or connected *     the response, when it comes
 *   CONFIRMED     a connection to a converter, whose SYN+ACK  connected                    the response, when it comes
 *                 has said that the server was reached
 *   BYPASS        a SYN to the server over Multipath TCP      SYN_SENT                     nothing
 *   BYPASSED      a connection to the server over Multipath   connected                    nothing: the server's first
 *                 TCP, which may still turn out to be lost                                 bytes are only peeked at
 *   EARLY_DIRECT  a SYN to the server over TCP; early data    SYN_SENT, or connected *     nothing
 *                 follows as soon as the socket is writable
 *   DIRECT        a socket that we leave alone                the kernel's answers         nothing
 *   DONE          a connection by way of a converter          connected                    nothing any more
 *   FAILED        a disconnected socket                       the error in conn.error      nothing
 *                                                             once, then the end
 *   DISSOLVED     a socket that isn't connected, after        ECONNRESET once              nothing
 *                 shutdown() or connect() to AF_UNSPEC
 *
 *   * connected if it has given early data: CONN_TOLD_CONNECTED, conn.h
 *
 * doc/states-shim.md has the events that change a phase, and conn_phase.c the table by which it checks each change.
 */
#ifndef SHIM_PHASE_H
#define SHIM_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum conn_phase {
	CONN_FREE,
	CONN_IDLE,
	CONN_STARTING,
	CONN_DEFERRED,
	CONN_RESOLVING,
	CONN_SYN_SENT,
	CONN_ASKED,
	CONN_CONFIRMED,
	CONN_BYPASS,
	CONN_BYPASSED,
	CONN_EARLY_DIRECT,
	CONN_DIRECT,
	CONN_DONE,
	CONN_FAILED,
	CONN_DISSOLVED,
	CONN_PHASE_COUNT
};

/* Sets of phases. */
#define PHASE(name) (UINT32_C(1) << (CONN_##name))

/* The application sees a connection in SYN_SENT, or believes it to be connected since it has given early data. */
#define PHASES_PENDING                                                                                              \
	(PHASE(STARTING) | PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS) | PHASE(EARLY_DIRECT))

/* The pending phases with work to do as soon as the socket is writable. */
#define PHASES_WANTING_OUTPUT (PHASE(STARTING) | PHASE(SYN_SENT) | PHASE(BYPASS) | PHASE(EARLY_DIRECT))

/* The application is connected, but we still have to check the first bytes on the stream. */
#define PHASES_CONFIRMED (PHASE(CONFIRMED) | PHASE(BYPASSED))

/* The connection needs further steps. */
#define PHASES_UNFINISHED (PHASE(DEFERRED) | PHASES_PENDING | PHASES_CONFIRMED)

/* The application has been told of an error, or will be. */
#define PHASES_FAILED (PHASE(FAILED) | PHASE(DISSOLVED))

/* Hooks that wait, read or write handle these connections; for all others they only call the next function. */
#define PHASES_HANDLED (PHASES_UNFINISHED | PHASES_FAILED)

static inline bool phase_in(enum conn_phase phase, uint32_t set)
{
	return set >> phase & 1;
}

/* Returns its name in the log, such as "SYN_SENT". */
const char *phase_name(enum conn_phase phase);

/* May @to follow @from, a different phase, by the table in conn_phase.c? */
bool phase_may_follow(enum conn_phase from, enum conn_phase to);

#endif
