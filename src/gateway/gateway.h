/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway.h - turns the workers of src/serve into a gateway: the packet's destination is the server, and the engine is the dialler */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "common/kernel_socket.h"
#include "engine/dial.h"
#include "gateway/gateway_settings.h"
#include "observe/monitor.h"
#include "serve/plugs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- connections that were routed instead of converted, by the reason ----- */

#define GATEWAY_REASONS_MAX 48

struct gateway_reason {
	_Atomic(const char *) text; /* static; compared as a pointer. NULL: this place and those behind it are unused */
	_Atomic uint64_t count;
};

/* The state that all workers share. */
struct gateway {
	_Atomic(const struct gateway_settings *) settings; /* those in force */
	struct gateway_reason routed[GATEWAY_REASONS_MAX];
	size_t workers;
	atomic_uint unfinished; /* clients in a row that the gateway has answered, and whose connections never came */
	int resolver; /* an eventfd: a converter's name is to be resolved */
	pthread_mutex_t copying; /* the resolver copies the settings in force; nobody frees settings meanwhile */
	struct monitor *monitor;
};

/* Counts a connection that is routed for this reason, a static text. */
void gateway_count_routed(struct gateway *gateway, const char *reason);

static inline struct gateway *gateway_of(const struct serve_context *context)
{
	return context->daemon;
}

/* Returns the plugs of a gateway, which must outlive them: gateway_judge.c. */
struct serve_plugs gateway_plugs(struct gateway *gateway);

/* ----- the dialler: gateway_dialler.c ----- */

extern const struct serve_dialler gateway_dialler;

/* Tries once to resolve a converter's name, if there is one, and starts the thread that does so from then on. Returns 0 or -errno. */
int gateway_resolver_start(struct gateway *gateway);

/* ----- the engine's operations on a socket of ours: gateway_socket.c ----- */

struct gateway_socket {
	int fd;          /* -1: none */
	int domain;
	uint32_t mark;   /* of all packets of this connection: they aren't diverted again */
	int64_t wake_at; /* when the engine's next step is due, CLOCK_MONOTONIC in ns; 0: never */
	unsigned sockets; /* how many there have been, for serve_dial_same_socket() */
	bool used;       /* it was connected, and has to be replaced before it is connected again */
	struct kernel_keepalive keepalive;
};

struct gateway_connection {
	struct dial dial;
	struct gateway_socket socket;
	bool reached;       /* the server has answered */
	const char *reason; /* why it failed, static */
};

extern const struct dial_ops gateway_operations;

/* Restores keepalive to this host's defaults, if the engine has changed it. */
void gateway_socket_settle(struct gateway_socket *socket);

/* Closes it, and resets its connection. */
void gateway_socket_close(struct gateway_socket *socket);

/* ----- the calls of src/hold and src/serve that need a right, in a process that has it; the service manager: gateway_rights.c ----- */

/*
 * gateway_queues_own() - become the owner of @count netfilter queues, the first free ones from @from on
 * Each worker carries its verdicts out itself, since it has the right to, and sends released SYNs to this host itself, with @mark
 * (gateway_rules.c). rights_bind() makes the sockets with @port transparent. Returns 0 or -errno, which is -EPERM without CAP_NET_ADMIN and
 * CAP_NET_RAW.
 */
int gateway_queues_own(uint16_t from, size_t count, uint32_t mark, uint16_t port);

/* Returns the number of the first queue. */
uint16_t gateway_queues_first(void);

/* Tells the service manager, if there is one: sd_notify(3). */
void gateway_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ----- faults of this host that keep a gateway from working as its settings say: gateway_checks.c ----- */

/* Called with each finding and its remedy. */
typedef void gateway_warn(const char *text);

/*
 * gateway_check_host() - look at sysctls, interfaces, offloads, NAT, firewall, rules, and routes to converters; changes nothing
 * @note: called with each fact that is no fault, but matters to limits, or to the converter's operator
 */
void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn, gateway_warn *note);

/* ----- the parts of the status that only a gateway has: gateway_status.c ----- */

/* For monitor_create(), with the struct gateway. */
extern const struct status_program gateway_status;

/* Counts a connection through a converter once its server has answered, by the network that its socket began on. Any thread may call it. */
void gateway_status_count(int fd, const union sockaddr_ip *converter, uint32_t round_trip_us);

/* Adds up the bytes of closed connections by network from now on. */
void gateway_status_watch(struct event_base *base);

#endif
