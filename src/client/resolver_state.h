/* SPDX-License-Identifier: BSD-3-Clause */
/* resolver_state.h - the calling thread's resolver, set aside while another one is in its place */
#ifndef CLIENT_RESOLVER_STATE_H
#define CLIENT_RESOLVER_STATE_H

#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <stdbool.h>

/* What is put back; on the stack of the function that sets it aside. */
struct resolver_state {
#ifdef HAVE_RES_NINIT
	struct __res_state res;
	int retrans, retry; /* of the resolver in its place, as resolv.conf has them */
#endif
	sigset_t signals;
	int cancel_state;
	int error, h_error; /* errno and h_errno */
};

/*
 * resolver_state_set_aside() - give the thread a resolver as /etc/resolv.conf has it
 *
 * Until resolver_state_put_back(), getaddrinfo(3) and res_query(3) use that one, the thread
 * can't be cancelled, and signals whose handlers may leave by siglongjmp(3) wait. Returns
 * false, with nothing changed, if there is no memory for it.
 */
bool resolver_state_set_aside(struct resolver_state *aside);

/* Frees what the other resolver has, and puts everything back, errno and h_errno included. */
void resolver_state_put_back(const struct resolver_state *aside);

/*
 * resolver_state_limit() - bound each question that follows to about @ms milliseconds
 *
 * What resolv.conf says ("options timeout:N attempts:N") holds where it is less. The C library
 * counts in seconds for each try of each name server, so that it is one second for each of
 * them at least; a search list may double it. It is no bound for a response that has to come
 * over TCP, nor for other sources than DNS in nsswitch.conf. musl has nothing to set: there it
 * is resolv.conf that says.
 */
void resolver_state_limit(const struct resolver_state *aside, int ms);

/* The names that follow are absolute: no domain of resolv.conf's search list is appended. */
void resolver_state_absolute(void);

#endif
