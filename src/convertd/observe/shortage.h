/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shortage.h - warns that clients are refused or have to wait, since connections or descriptors are used up
 *
 * Each such client has its own line in the log, on the level "info". These warnings are for the operator and name the
 * remedy; one is logged at once, and one per LOG_LIMIT_MS as long as the shortage lasts. Any thread may call these.
 */
#ifndef CONVERTD_SHORTAGE_H
#define CONVERTD_SHORTAGE_H

struct terms;

/* Warns that a client was refused since the limit of connections is reached. */
void shortage_of_connections(const struct terms *terms);

/*
 * shortage_of_files() - warn if @error, the errno of a failed call, means a lack of descriptors or memory
 * @what: the consequence, as "clients have to wait"
 */
void shortage_of_files(int error, const char *what);

#endif
