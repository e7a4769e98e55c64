/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - one attempt at a converter: what is asked, the SYN, and what goes with it; for steps.c */
#ifndef ENGINE_ATTEMPT_H
#define ENGINE_ATTEMPT_H

#include "engine/dial.h"

/* The attempt's times have changed: asks the front end for the next step in time. */
void attempt_wake(struct dial *dial);

/*
 * attempt_begin() - ask attempt.converter, at attempt.addr, by a socket that fits
 * @hold: as for dial_next(). Returns DIAL_ON, DIAL_HELD or -errno.
 */
int attempt_begin(struct dial *dial, bool hold);

/* attempt_again() - ask the same converter again, by the same socket, as the attempt says by now. Returns 0 or -errno. */
int attempt_again(struct dial *dial);

/* attempt_anew() - likewise in another way; CONVERT_TIMEOUT goes on, but half of it is left at least. Returns 0 or -errno. */
int attempt_anew(struct dial *dial, enum ask_way way);

/* attempt_answered() - the SYN was, as @info tells: the round trip of its path is noted, once */
void attempt_answered(struct dial *dial, const struct tcp_info *info);

#endif
