/* SPDX-License-Identifier: BSD-3-Clause */
/* fastopen.h - asks the kernel for the Fast Open cookies that servers have given this host (RFC 8803 7.6) */
#ifndef CONVERTD_FASTOPEN_H
#define CONVERTD_FASTOPEN_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>

/* RFC 7413 4.1.1: 4 to 16 bytes, an even number. */
#define FASTOPEN_COOKIE_MIN 4
#define FASTOPEN_COOKIE_MAX 16

struct fastopen_cookie {
	uint8_t len; /* 0: none */
	uint8_t bytes[FASTOPEN_COOKIE_MAX];
};

struct fastopen;

/* Tells whether this kernel can be asked for cookies. */
bool fastopen_is_known(void);

/* Opens a netlink socket to ask with. Returns it, for fastopen_destroy(), or NULL where the kernel can't be asked. */
struct fastopen *fastopen_create(void);

/* NULL is fine. */
void fastopen_destroy(struct fastopen *fastopen);

/*
 * fastopen_find() - find the cookie that the kernel will put into its next Fast Open SYN to a server
 * @source: the address that the SYN will come from; NULL or AF_UNSPEC where the kernel will choose one
 * @out: set to the cookie; its length is 0 where the kernel has none, and will ask for one
 */
void fastopen_find(struct fastopen *fastopen, const union sockaddr_ip *source,
		   const union sockaddr_ip *server, struct fastopen_cookie *out);

/* Tells whether @cookie is the one of @len bytes at @bytes. */
bool fastopen_equal(const struct fastopen_cookie *cookie, const void *bytes, size_t len);

#endif
