/* SPDX-License-Identifier: BSD-3-Clause */
/* blame.h - a server isn't reached: is that the server's doing, or this converter's? */
#ifndef CONVERTD_BLAME_H
#define CONVERTD_BLAME_H

#include "common/sockaddr.h"
#include "convertd/net/downstream.h"

#include <stdbool.h>
#include <stdint.h>

struct request_context;
struct tcp_info;

/*
 * blame_refusal() - what a client is told whose server isn't reached
 * @fd: the server's socket, -1 where there is none
 * @asked_ms: when the server was asked, as clock_now_ms()
 * @error: -errno of downstream_connect() or downstream_result(), -ETIMEDOUT where time is up
 */
struct downstream_error blame_refusal(struct request_context *context, int fd,
				      const union sockaddr_ip *server, uint64_t asked_ms, int error);

/* What a client is told whose server can't be reached from this host, though the client itself may reach it. */
struct downstream_error blame_ourselves(void);

/* The server has been silent for a while. Is that more likely this host's fault, so that the client is told so? */
bool blame_silence(struct request_context *context, const union sockaddr_ip *server, uint64_t asked_ms);

/* The server was reached: its family works. */
void blame_nobody(const union sockaddr_ip *server);

/* A request is refused since its family doesn't work here: has that tested again, if it is time. */
void blame_again(struct request_context *context, const union sockaddr_ip *server);

/* Prepares @context, of which the rest is set, for all of this. Returns 0 or -ENOMEM. */
int blame_init(struct request_context *context);
void blame_fini(struct request_context *context);

#endif
