/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - one attempt at a converter: the contents of the request, the SYN, and its data; for steps.c */
#ifndef ENGINE_ATTEMPT_H
#define ENGINE_ATTEMPT_H

#include "engine/dial.h"

/* Sets the front end's timer for the next step, after a change of the attempt's times. */
void attempt_wake(struct dial *dial);

/*
 * attempt_begin() - ask attempt.converter at attempt.addr, over a suitable socket
 * @hold: as for dial_next(). Returns DIAL_ON, DIAL_HELD or -errno.
 */
int attempt_begin(struct dial *dial, bool hold);

/* attempt_again() - ask the same converter again over the same socket, by the attempt's present values. Returns 0 or -errno. */
int attempt_again(struct dial *dial);

/* attempt_anew() - ask it again by @way. CONVERT_TIMEOUT continues, but at least half of it is left. Returns 0 or -errno. */
int attempt_anew(struct dial *dial, enum ask_way way);

/* attempt_answered() - note, once, the round trip of the path after the SYN was answered. @info: of the socket */
void attempt_answered(struct dial *dial, const struct tcp_info *info);

#endif
