/* SPDX-License-Identifier: BSD-3-Clause */
/* session_report.h - what a session leaves behind: its line in the log, its part of the metrics */
#ifndef CONVERTD_SESSION_REPORT_H
#define CONVERTD_SESSION_REPORT_H

#include "convertd/session/session_private.h"

/* Notes how the session ends, or will. @reason: a constant that says it better than the outcome's own text, or NULL */
void session_set_outcome(struct session *s, enum outcome outcome, const char *reason);

/* Notes whether the client's side is MPTCP and how many subflows it has, while its socket is open. */
void session_look_transport(struct session *s);

/* Notes our address towards the server, for a line in the log, while its socket is open and connected. */
void session_look_source(struct session *s);

/* Microseconds since the client was accepted; 1 at least, so that 0 stands for never. */
uint64_t session_age_us(const struct session *s);

/* Bytes carried from that end to the other, without the converter's own answer. */
uint64_t session_relayed(const struct session *s, enum relay_end from);

/* Warns that a client is reset for what exceeds a limit: one line stands for many. */
void session_report_drop(const struct session *s, enum outcome outcome);

/* Likewise for the kernel memory that it holds. The session has a line of its own as well, if its outcome hasn't too many. */
void session_report_memory(struct session *s);

/* Decides whether the session has a line in the log; it has ended, and its sockets are still open. */
void session_decide_line(struct session *s);

/* Writes the line, and counts the session among those that have ended. */
void session_report_end(const struct session *s);

#endif
