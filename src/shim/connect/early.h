/* SPDX-License-Identifier: BSD-3-Clause */
/* early.h - the application's first bytes, kept until the server was reached */
#ifndef SHIM_EARLY_H
#define SHIM_EARLY_H

#include "shim/socket/conn.h"

#include <sys/uio.h>

/*
 * early_keep() - copy the application's first bytes, at most EARLY_MAX
 * They ride in the SYN behind the request; if the converter fails, they are needed again, for
 * the next one or for the server itself. Once for each conn, which is claimed. Returns how many
 * bytes were taken: 0 if there is no memory, fewer than there are if not all of them can be read.
 */
#define EARLY_MAX 4096u
size_t early_keep(struct conn *conn, const struct iovec *iov, size_t count);

/* They are not needed any more. */
void early_drop(struct conn *conn);

#endif
