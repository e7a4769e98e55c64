/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - the client's side of one conversion, as a machine without I/O
 *
 * A front end (the preload hooks) moves the bytes: it sends the request as the
 * first bytes of the stream to the converter, shows each prefix of the answer
 * that it has to handshake_on_bytes(), and does what the step says. The machine
 * keeps no state between calls: the bytes seen so far are the state, so a front
 * end may peek at them as often as it likes.
 */
#ifndef CLIENT_HANDSHAKE_H
#define CLIENT_HANDSHAKE_H

#include "common/sockaddr.h"
#include "convert/convert.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum handshake_verdict {
	HANDSHAKE_NEED_MORE, /* wait until step.length bytes are there, then ask again */
	HANDSHAKE_DONE,      /* the server was reached; take step.length bytes off the stream */
	HANDSHAKE_FAIL,      /* reset the connection; step.error is the application's errno */
};

/* Whose failure it is: the server's is final, the converter's may be worked around. */
enum handshake_fault {
	HANDSHAKE_FAULT_NONE,
	HANDSHAKE_FAULT_SERVER,    /* it refused or could not be reached (Error TLV) */
	HANDSHAKE_FAULT_CONVERTER, /* it would not or could not serve the request (Error TLV) */
	HANDSHAKE_FAULT_PROTOCOL,  /* what came is not a valid response (Sections 6, 8) */
};

struct handshake_step {
	enum handshake_verdict verdict;
	enum handshake_fault fault;
	size_t length;      /* bytes, counted from the start of the stream */
	int error;          /* errno of connect(2), positive */
	const char *reason; /* a static text for the log */
	/*
	 * FAIL for want of a cookie, and the converter gave one (Section 6.2.7): keep it, and ask again
	 * on a new connection. Points into the bytes that were shown; empty otherwise.
	 */
	struct convert_span cookie;
};

/*
 * handshake_request() - write the message that asks for @server
 * @cookie, @cookie_len: for a Cookie TLV, or NULL and 0
 * Returns its length in bytes, or -errno (-EINVAL: Section 6.2.5 forbids the
 * address; -ENOBUFS: @capacity is too small).
 */
ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const uint8_t *cookie, size_t cookie_len);

/*
 * handshake_on_bytes() - the first @len bytes of the converter's stream are known
 * @server: the destination; its family decides how ICMP codes read
 * Never says DONE or FAIL of a valid prefix, NEED_MORE of an invalid one.
 */
struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server);

/* handshake_on_close() - the stream ended, or failed, after a valid prefix. */
struct handshake_step handshake_on_close(void);

#endif
