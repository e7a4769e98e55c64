/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * early.h - keeps the application's first bytes until the server was reached
 *
 * The SYN carries them behind the request. If the converter fails, the next converter or the server itself needs them; so we keep a copy,
 * in pages of its own, since a hook must not call malloc().
 */
#ifndef SHIM_EARLY_H
#define SHIM_EARLY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define EARLY_MAX 4096u /* bytes */

/* Only the thread that has claimed the conn writes it; others check only whether there are bytes. */
struct early {
	uint8_t *_Atomic bytes; /* NULL: none */
	_Atomic uint16_t len;
};

/*
 * early_keep() - copy the application's first bytes, EARLY_MAX at most, into @early, which is empty
 * Returns the number of bytes taken: 0 if there is no memory, fewer than in @iov if some are unreadable.
 */
size_t early_keep(struct early *early, const struct iovec *iov, size_t count);

/* Frees the memory; @early is empty afterwards. */
void early_drop(struct early *early);

#endif
