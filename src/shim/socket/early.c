/* SPDX-License-Identifier: BSD-3-Clause */
/* early.c - keeps the application's first bytes until the server was reached */
#include "config.h"

#include "shim/socket/early.h"

#include "shim/system/usermem.h"

#include <sys/mman.h>

size_t early_keep(struct early *early, const struct iovec *iov, size_t count)
{
	uint8_t *memory = mmap(NULL, EARLY_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t len = 0;

	if (memory == MAP_FAILED)
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t part = iov[i].iov_len < EARLY_MAX - len ? iov[i].iov_len : EARLY_MAX - len;
		size_t got = usermem_read_part(memory + len, iov[i].iov_base, part);

		len += got;
		if (got < part) /* send(2), too, sends the readable part */
			break;
	}
	if (!len) {
		munmap(memory, EARLY_MAX);
		return 0;
	}
	early->len = (uint16_t)len;
	early->bytes = memory;
	return len;
}

void early_drop(struct early *early)
{
	if (early->bytes)
		munmap(early->bytes, EARLY_MAX);
	early->bytes = NULL;
	early->len = 0;
}
