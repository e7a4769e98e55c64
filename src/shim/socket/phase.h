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
 *   HELD          a SYN that waits for its first data         connected                    nothing
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
 * The changes of phase:
 *
 *   event                                            phase                      what follows
 *   -----------------------------------------------  -------------------------  -----------------------------------------
 *   socket()                                         FREE                       IDLE
 *   connect() that isn't converted, listen()         IDLE                       DIRECT; IDLE again if the kernel refuses
 *   connect() that is                                IDLE                       STARTING
 *     the SYN has gone, and its SYN+ACK matters      STARTING                   SYN_SENT
 *     the request has gone with it, and it doesn't   STARTING                   ASKED
 *     the application may give early data            STARTING                   HELD
 *     the server speaks Multipath TCP itself         STARTING                   BYPASS
 *     we must resolve a converter's name first       STARTING                   RESOLVING
 *     there is no converter to ask                   STARTING                   IDLE
 *   first output, or a wait for input                HELD                       SYN_SENT, ASKED
 *   first output while the name is being resolved    RESOLVING                  RESOLVING: kept as early data
 *   the name is resolved                             RESOLVING                  SYN_SENT, ASKED, or as "converter fails"
 *   SYN+ACK: Multipath TCP is lost, data not taken   SYN_SENT                   SYN_SENT, ASKED: asked in another way
 *   no SYN+ACK: its path is silent, another isn't    SYN_SENT ASKED             SYN_SENT, ASKED: asked by the other path
 *   SYN+ACK: no more than that                       SYN_SENT                   ASKED, once all of the request is sent
 *   SYN+ACK: the server was reached                  SYN_SENT                   CONFIRMED
 *   SYN+ACK to a silent request: the same            SYN_SENT                   DONE
 *   response: the server was reached                 SYN_SENT ASKED CONFIRMED   DONE
 *   response: the server was not reached             SYN_SENT ASKED CONFIRMED   FAILED
 *   response: a cookie is missing, an option unknown SYN_SENT ASKED             SYN_SENT, ASKED: asked again
 *   the converter fails: error, reset, silence       HELD RESOLVING SYN_SENT    SYN_SENT, ASKED, RESOLVING: the next one;
 *                                                    ASKED                      DIRECT, EARLY_DIRECT: there is none;
 *                                                                               FAILED: it isn't allowed
 *   the connection ends, Multipath TCP is lost       CONFIRMED BYPASSED         FAILED
 *   SYN+ACK of the server: Multipath TCP             BYPASS                     BYPASSED; DIRECT for the C library's
 *   SYN+ACK of the server: none                      BYPASS                     DIRECT: asked over TCP
 *   the server's first bytes, or a program without   BYPASSED                   DIRECT
 *     us gets the socket
 *   all early data is sent                           EARLY_DIRECT               DIRECT
 *   the server refuses, can't be reached             BYPASS EARLY_DIRECT        FAILED
 *   another process has asked: SYN+ACK, silently     SYN_SENT                   DONE
 *   another process has asked: anything else         HELD to EARLY_DIRECT       FAILED
 *   shutdown(), connect() to AF_UNSPEC               HELD to EARLY_DIRECT       DISSOLVED
 *   connect() to AF_UNSPEC                           DIRECT DONE                DISSOLVED, or IDLE if it wasn't connected
 *                                                    FAILED                     DISSOLVED; IDLE if it got the error
 *   the application gets the error                   DISSOLVED                  IDLE
 *   connect() again                                  FAILED DISSOLVED           IDLE
 *   exec(): the program before had the socket        IDLE                       SYN_SENT, silently; DONE, DIRECT, FAILED,
 *                                                                               DISSOLVED
 *   the last descriptor is closed                    any                        FREE
 *
 * phase.c has the same table for conn.c, which checks each change.
 */
#ifndef SHIM_PHASE_H
#define SHIM_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum conn_phase {
	CONN_FREE,
	CONN_IDLE,
	CONN_STARTING,
	CONN_HELD,
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
#define PHASES_UNFINISHED (PHASE(HELD) | PHASES_PENDING | PHASES_CONFIRMED)

/* The application has been told of an error, or will be. */
#define PHASES_FAILED (PHASE(FAILED) | PHASE(DISSOLVED))

/* Hooks must do more than call the next function. */
#define PHASES_ATTENTIVE (PHASES_UNFINISHED | PHASES_FAILED)

static inline bool phase_in(enum conn_phase phase, uint32_t set)
{
	return set >> phase & 1;
}

/* Returns its name in the log, such as "SYN_SENT". */
const char *phase_name(enum conn_phase phase);

/* May @to follow @from, a different phase, according to the table above? */
bool phase_may_follow(enum conn_phase from, enum conn_phase to);

#endif
