/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * early.h - the application's first bytes, kept until the server was reached
 *
 * They ride in the SYN behind the request. If the converter fails they are needed again, for the next converter or
 * for the server itself; so a copy of them is kept, in pages of its own, since a hook must not call malloc().
 */
#ifndef SHIM_EARLY_H
#define SHIM_EARLY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define EARLY_MAX 4096u /* bytes */

/* Written by whoever has claimed the conn; other threads look only whether there is any. */
struct early {
	uint8_t *_Atomic bytes; /* NULL: none */
	_Atomic uint16_t len;
};

/*
 * early_keep() - copy the application's first bytes, EARLY_MAX at most, into @early, which is empty
 * Returns how many bytes were taken: 0 if there is no memory, fewer than @iov has if not all of them can be read.
 */
size_t early_keep(struct early *early, const struct iovec *iov, size_t count);

/* Gives the memory back; @early is empty afterwards. */
void early_drop(struct early *early);

#endif
