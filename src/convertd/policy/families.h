/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * families.h - finds out whether each address family works from this host (no I/O)
 *
 * Times are those of clock_now_ms(), in milliseconds. Any thread may call any function at any time.
 */
#ifndef CONVERTD_FAMILIES_H
#define CONVERTD_FAMILIES_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stdint.h>

enum family {
	FAMILY_V4,
	FAMILY_V6,
	FAMILY_COUNT
};

enum family_state {
	FAMILY_UNKNOWN, /* no server has answered yet */
	FAMILY_WORKS,   /* a server has answered, and not too many were silent since */
	FAMILY_DOUBTED, /* several servers were silent since: some that have answered before are tested */
	FAMILY_SILENT,  /* no server answers: requests are refused at once, and servers tested now and then */
	FAMILY_STATE_COUNT
};

/*
 * Milliseconds after which a server that hasn't answered says something about its family: less than clients wait
 * for a converter that they don't know (CONVERT_TIMEOUT, 3 s).
 */
#define FAMILIES_PATIENCE_MS 2800

/* Returns the family of a server's address. */
enum family families_of(const union sockaddr_ip *server);

/* Returns "IPv4" or "IPv6". */
const char *families_name(enum family family);

/* Returns the present state of a family. */
enum family_state families_state(enum family family);

/* Tells whether there is a route out of this host, by the last call of families_set_routed(); true at first. */
bool families_is_routed(enum family family);

/* Is there no way to servers? Then no family is known to work, and IPv4 is silent, or each family is silent or has no route. */
bool families_reach_nothing(void);

/* Tells whether we should refuse a request for a server at @address (IPv4 as v4-mapped), since it would fail. */
bool families_refuse(const struct in6_addr *address, uint64_t now_ms);

/* Notes that the server was reached or has refused: in both cases packets went there and back. */
void families_answered(const union sockaddr_ip *server, uint64_t now_ms);

/*
 * families_unanswered() - note that the server hasn't answered within FAMILIES_PATIENCE_MS, or that connecting failed
 * @started_ms: when the SYN was sent
 * @silent: nothing has come back; if false, a router has said that the server can't be reached
 * Returns whether the family rather than the server has failed: no server of it has answered since @started_ms, and it isn't known to work.
 */
bool families_unanswered(const union sockaddr_ip *server, uint64_t started_ms, uint64_t now_ms,
			 bool silent);

/* Notes that a client was refused this server since its family is silent: the server is tested soon. */
void families_asked(const union sockaddr_ip *server, uint64_t now_ms);

/*
 * families_take_test() - take the server that is to be tested now
 * Returns false if there is none: the family works, or it is too early. After true, the caller tests @server and
 * reports the result by families_answered() or families_test_failed(); or nothing if it can't test now: the next follows.
 */
bool families_take_test(enum family family, uint64_t now_ms, union sockaddr_ip *server);
void families_test_failed(const union sockaddr_ip *server, uint64_t now_ms);

/* Returns when the next test is due; 0: none is. */
uint64_t families_next_test_ms(enum family family);

/*
 * families_set_routed() - note whether there is a route out of this host
 * @tell: log a warning if there is none, even if that was known before; false where no client may use this family
 */
void families_set_routed(enum family family, bool routed, bool tell, uint64_t now_ms);

/* Notes that routes have changed: pending tests are made soon, as they may succeed now. */
void families_routes_changed(uint64_t now_ms);

/* Forgets everything, as if the process had just begun: for tests. */
void families_forget(void);

#endif
