/* SPDX-License-Identifier: BSD-3-Clause */
/* blame.h - decides who is to blame when a server isn't reached: the server, or this converter */
#ifndef CONVERTD_BLAME_H
#define CONVERTD_BLAME_H

#include "common/sockaddr.h"
#include "convertd/net/downstream.h"

#include <stdbool.h>
#include <stdint.h>

struct request_context;
struct tcp_info;

/*
 * blame_refusal() - return the error to send to a client whose server wasn't reached
 * @fd: the server's socket, -1 if there is none
 * @asked_ms: when the server was asked, as clock_now_ms()
 * @error: -errno of downstream_connect() or downstream_result(), -ETIMEDOUT if time is up
 */
struct downstream_error blame_refusal(struct request_context *context, int fd,
				      const union sockaddr_ip *server, uint64_t asked_ms, int error);

/* Returns the error to send to a client whose server this host can't reach, though the client itself may. */
struct downstream_error blame_ourselves(void);

/* Tells whether this host more likely causes the server's silence than the server, so that the client should know. */
bool blame_silence(struct request_context *context, const union sockaddr_ip *server, uint64_t asked_ms);

/* Notes that the server was reached, so its family works. */
void blame_nobody(const union sockaddr_ip *server);

/* Notes that a request is refused since its family doesn't work here, and starts the next test of the family if it is due. */
void blame_again(struct request_context *context, const union sockaddr_ip *server);

/* Prepares @context, whose other members are set, for the functions above. Returns 0 or -ENOMEM. */
int blame_init(struct request_context *context);
void blame_fini(struct request_context *context);

#endif
