/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolver_state.c - the calling thread's resolver, set aside while another one is in its place
 *
 * getaddrinfo() has no argument for a resolver: it uses, and changes, the thread's own `_res`,
 * of which the application may have made what it likes. glibc 2.36 initialises it if it isn't,
 * and may load it anew if resolv.conf has changed; else it asks the servers that the
 * application has put there, over the sockets that it has open. It sets h_errno, and errno
 * even on success.
 *
 * So the bytes of `_res` are set aside, and a fresh state is made in its place and released by
 * res_nclose(). What the bytes refer to can't go meanwhile: they own it (name server
 * addresses, sockets), or it is counted and they still hold their count (glibc's extended
 * state, found by an index in them). They come back to the same place, which the pointers that
 * they have into themselves (dnsrch) need. `_res` is the thread's own: no other sees the
 * exchange.
 *
 * This nests in a lookup of the application, which is where it is when a module of
 * nsswitch.conf connects to its server: glibc then goes on with the lookup's context, which
 * refers to `_res` by its address. (A lookup by res_nquery() has no such context, and glibc
 * aborts: a signal handler that connects in the middle of one, by name, for the first time.)
 *
 * Cancellation is off, and caught signals that come from terminals, timers and administrators
 * wait, since connect(), where this runs, may well be left by siglongjmp() (wget's time-outs
 * are), and the fresh state must not stay. Others are let through: garbage collectors stop
 * threads by them, sandboxes emulate system calls; and what isn't caught ends the process at
 * once, as ever.
 */
#include "config.h"

#include "client/resolver_state.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define TRIES 2

static const int deferred[] = { SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM };

static void signals_defer(sigset_t *before)
{
	sigset_t caught;

	sigemptyset(&caught);
	for (size_t i = 0; i < ARRAY_SIZE(deferred); i++) {
		struct sigaction action;

		if (sigaction(deferred[i], NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN)
			sigaddset(&caught, deferred[i]);
	}
	pthread_sigmask(SIG_BLOCK, &caught, before);
}

#ifdef HAVE_RES_NINIT
static bool res_exchange(struct resolver_state *aside)
{
	memcpy(&aside->res, &_res, sizeof(aside->res));
	memset(&_res, 0, sizeof(_res));
	if (res_ninit(&_res) < 0) {
		memcpy(&_res, &aside->res, sizeof(aside->res));
		return false;
	}
	aside->retrans = _res.retrans;
	aside->retry = _res.retry;
	return true;
}

static void res_put_back(const struct resolver_state *aside)
{
	res_nclose(&_res);
	memcpy(&_res, &aside->res, sizeof(aside->res));
}

void resolver_state_limit(const struct resolver_state *aside, int ms)
{
	int seconds = ms / 1000, servers = _res.nscount > 0 ? _res.nscount : 1;
	int retry = aside->retry < TRIES ? aside->retry : TRIES;

	/* all servers in turn, in each try */
	if (seconds < servers * retry)
		retry = 1;
	seconds /= servers * retry;
	_res.retry = retry;
	_res.retrans = seconds < aside->retrans ? seconds : aside->retrans;
	if (_res.retrans < 1)
		_res.retrans = 1;
}

void resolver_state_absolute(void)
{
	_res.options &= ~(unsigned long)(RES_DEFNAMES | RES_DNSRCH);
}
#else
/* A resolver without state, as musl's is. */
static bool res_exchange(struct resolver_state *aside)
{
	(void)aside;
	return true;
}

static void res_put_back(const struct resolver_state *aside)
{
	(void)aside;
}

void resolver_state_limit(const struct resolver_state *aside, int ms)
{
	(void)aside;
	(void)ms;
}

/*
 * musl searches only for names with fewer dots than resolv.conf's ndots, by default for those
 * without.
 */
void resolver_state_absolute(void)
{
}
#endif

static void thread_put_back(const struct resolver_state *aside)
{
	h_errno = aside->h_error;
	errno = aside->error;
	pthread_setcancelstate(aside->cancel_state, NULL);
	/* Last: a handler that has waited may leave by siglongjmp() now. */
	pthread_sigmask(SIG_SETMASK, &aside->signals, NULL);
}

bool resolver_state_set_aside(struct resolver_state *aside)
{
	aside->error = errno;
	aside->h_error = h_errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &aside->cancel_state);
	signals_defer(&aside->signals);
	if (res_exchange(aside))
		return true;
	thread_put_back(aside);
	return false;
}

void resolver_state_put_back(const struct resolver_state *aside)
{
	res_put_back(aside);
	thread_put_back(aside);
}
