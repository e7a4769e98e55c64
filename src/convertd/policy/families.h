/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * families.h - does each address family work from here? (no I/O)
 *
 * Times are clock_now_ms(). All threads may call all of this at any time.
 */
#ifndef CONVERTD_FAMILIES_H
#define CONVERTD_FAMILIES_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum family {
	FAMILY_V4,
	FAMILY_V6,
	FAMILY_COUNT
};

enum family_state {
	FAMILY_UNKNOWN, /* no server has answered yet */
	FAMILY_WORKS,   /* one has, and not too many were silent since */
	FAMILY_DOUBTED, /* several were silent since: servers that have answered before are tested */
	FAMILY_SILENT,  /* none answers: requests are refused at once, and servers tested now and then */
	FAMILY_STATE_COUNT
};

/*
 * Milliseconds after which a server that hasn't answered says something about its family: less than clients wait
 * for a converter that they don't know (CONVERT_TIMEOUT, 3 s).
 */
#define FAMILIES_PATIENCE_MS 2800

enum family families_of(const union sockaddr_ip *server);

/* "IPv4", "IPv6" */
const char *families_name(enum family family);

/* "unknown", "works", "doubted", "silent": for people and programs */
const char *families_state_name(enum family_state state);

enum family_state families_state(enum family family);

/* Is there a route out of this host? Until told otherwise there is. */
bool families_is_routed(enum family family);

/* Is a request for a server at @address (IPv4 as v4-mapped) to be refused, as it would be in vain? */
bool families_refuse(const struct in6_addr *address, uint64_t now_ms);

/* The server was reached, or has refused: in both cases packets went there and back. */
void families_answered(const union sockaddr_ip *server, uint64_t now_ms);

/*
 * families_unanswered() - the server hasn't answered for FAMILIES_PATIENCE_MS, or to the end
 * @started_ms: when it was asked
 * @silent: nothing has come back; else some router has said that it can't be reached
 * Returns whether this is rather the family's fault than the server's: nobody has answered in it since
 * that time, and it isn't known to work.
 */
bool families_unanswered(const union sockaddr_ip *server, uint64_t started_ms, uint64_t now_ms,
			 bool silent);

/* A client has asked for this server and was refused since its family is silent: worth a test. */
void families_asked(const union sockaddr_ip *server, uint64_t now_ms);

/*
 * families_take_test() - which server is to be tested now?
 * Returns false if none is: the family works, or it is too early. Whoever gets true tells what became
 * of it by families_answered() or families_tested_in_vain().
 */
bool families_take_test(enum family family, uint64_t now_ms, union sockaddr_ip *server);
void families_tested_in_vain(const union sockaddr_ip *server, uint64_t now_ms);

/* When the next test is due; 0: none is. */
uint64_t families_next_test_ms(enum family family);

/*
 * families_set_routed() - there is a route out of this host now, or there is none
 * @tell: warn if there is none, be that news or not; false: nobody may use this family
 */
void families_set_routed(enum family family, bool routed, bool tell, uint64_t now_ms);

/* The routes have changed: what didn't work may work now. */
void families_routes_changed(uint64_t now_ms);

/* Forgets all, as if the process had just begun: for tests. */
void families_forget(void);

#endif
