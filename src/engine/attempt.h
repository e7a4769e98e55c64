/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - one attempt at a connection, for steps.c; front ends use dial.h */
#ifndef ENGINE_ATTEMPT_H
#define ENGINE_ATTEMPT_H

#include "engine/dial.h"

/* Sets the front end's timer for the next step, after a change of the attempt's times. */
void attempt_wake(struct dial *dial);

/*
 * attempt_begin() - ask attempt.converter at attempt.addr, over a suitable socket
 * @defer: as for dial_next(). Returns DIAL_IN_PROGRESS, DIAL_DEFERRED or -errno.
 */
int attempt_begin(struct dial *dial, bool defer);

/* attempt_again() - send the request, the first or a further time, over the socket by the attempt's present values. Returns 0 or -errno. */
int attempt_again(struct dial *dial);

/* attempt_anew() - ask the same converter again by @way, in the rest of CONVERT_TIMEOUT, at least half of it. Returns 0 or -errno. */
int attempt_anew(struct dial *dial, enum ask_way way);

/* Is the SYN, or the request behind the handshake, of the dial @owner unanswered? */
bool attempt_is_unanswered(void *owner);

/* Returns the kind of the unanswered SYN or request. */
enum survey_syn attempt_syn(const struct dial *dial);

/*
 * attempt_judge_silence() - judge an attempt that is silent; @alive: the converter's host acknowledges
 * Blames only this connection if others get through on the path, while another connection is finding that out, or on a path that the
 * program has chosen. If we can't ask, the converter rests for this process only. Returns the failure, for attempt_let_rest().
 */
struct handshake_step attempt_judge_silence(struct dial *dial, bool alive);

/* Lets the converter rest for as long as @why says. */
void attempt_let_rest(const struct dial *dial, const struct handshake_step *why);

/* attempt_answered() - note, once, the round trip of the path after the SYN was answered. @info: of the socket */
void attempt_answered(struct dial *dial, const struct tcp_info *info);

#endif
