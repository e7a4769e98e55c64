/* SPDX-License-Identifier: BSD-3-Clause */
/* session_socket.h - a session's two sockets, their events, and its one deadline */
#ifndef CONVERTD_SESSION_SOCKET_H
#define CONVERTD_SESSION_SOCKET_H

#include "convertd/session/session_private.h"

/* The event of the deadline; it has its callback from the session's beginning on. */
struct event *session_deadline_event(struct session *s);

/* Registers the client's or the server's socket for all its events, edge-triggered. Returns 0 or -errno. */
int session_register(struct session *s, enum relay_end end, int fd);

/* Takes over the server's socket and registers it. Returns 0 or -errno. */
int session_watch_downstream(struct session *s, int fd);

/* Takes over the server's socket with its registration, and what that has told already. */
void session_adopt_downstream(struct session *s, int fd, int registration, uint32_t events);

/* Closes a socket, if it is open, and forgets it; its events end with it. */
void session_close_socket(struct session *s, enum relay_end end);

/* As session_close_socket(), with an RST, or on MPTCP with MP_FASTCLOSE. */
void session_reset_socket(struct session *s, enum relay_end end);

/*
 * session_cut() - resets both sockets, as convertd ends
 * If convertd has a survivor, that resets them, once the bytes that are on their way have arrived.
 */
void session_cut(struct session *s);

/* Has the client reset the connection? Its FIN doesn't count. */
bool session_client_is_lost(const struct session *s);

/* Has the client completed its handshake, and not ended the connection since? Its socket must be open. If so, far_clients.h is told. */
bool session_client_is_established(const struct session *s);

/* Reads and throws away what a client still sends that has been refused. Returns false where there is nobody to wait for. */
bool session_drain_client(struct session *s);

/* Sets the session's deadline, or clears it where there is no such time-out. */
void session_set_deadline(struct session *s, enum session_timeout timeout);

/* session_put_off_deadline() - have the deadline that is over be in @ms milliseconds more, which aren't 0 */
void session_put_off_deadline(struct session *s, unsigned ms);

void session_clear_deadline(struct session *s);

#endif
