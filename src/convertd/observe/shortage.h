/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shortage.h - warn that clients are turned away, or wait, since there is too little for all of them
 *
 * Each such client has its own line in the log, on the level of information; here is the operator's, with
 * what to do about it: one at once, and one in LOG_LIMIT_MS as long as it goes on. Any thread may call these.
 */
#ifndef CONVERTD_SHORTAGE_H
#define CONVERTD_SHORTAGE_H

struct terms;

/* A client was refused since there are as many connections as may be. */
void shortage_of_connections(const struct terms *terms);

/*
 * shortage_of_files() - a call failed with this errno; nothing is said of those that aren't about descriptors
 * @what: became of the client, "clients have to wait"
 */
void shortage_of_files(int error, const char *what);

#endif
