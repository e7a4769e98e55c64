/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.c - the addresses of a converter that is configured by name */
#include "config.h"

#include "client/resolve.h"

#include "common/clock.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/*
 * The calling thread's resolver, saved while another one is in its place
 *
 * getaddrinfo() has no argument for a resolver: it uses, and changes, the thread's own `_res`, which the application may have modified in
 * any way. glibc 2.36 initialises `_res` if necessary, and may reload it if resolv.conf has changed; else it asks the servers that the
 * application has put there, over the sockets that `_res` has open. It sets h_errno, and errno even on success.
 *
 * So we save the bytes of `_res`, create a fresh state in its place, and release that by res_nclose(). The objects that the bytes refer to
 * can't go meanwhile: the bytes own them (name server addresses, sockets), or hold a count of them (glibc's extended state, found by an
 * index in the bytes). We restore the bytes to the same place, because they contain pointers into themselves (dnsrch). `_res` belongs to
 * the thread: no other thread sees the exchange.
 *
 * This may run inside a lookup of the application, if a module of nsswitch.conf connects to its server: glibc then continues with the
 * lookup's context, which refers to `_res` by its address. (A lookup by res_nquery() has no such context, and glibc aborts: this happens if
 * a signal handler connects in the middle of one, by name, for the first time.)
 *
 * Cancellation is off. Caught signals from terminals, timers and administrators wait, because the application may leave connect(), where
 * this runs, by siglongjmp() (wget's time-outs do), and the fresh state must not stay. Other signals pass: garbage collectors stop threads
 * by them, sandboxes emulate system calls. A signal that isn't caught ends the process at once, as ever.
 */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define TRIES 2

/* The state to restore; on the stack of the function that saves it. */
struct resolver_state {
#ifdef HAVE_RES_NINIT
	struct __res_state res;
	int retrans, retry; /* of the fresh resolver, from resolv.conf */
#endif
	sigset_t signals;
	int cancel_state;
	int error, h_error; /* errno and h_errno */
};

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

static void resolver_state_limit(const struct resolver_state *aside, int ms)
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

static void resolver_state_absolute(void)
{
	_res.options &= ~(unsigned long)(RES_DEFNAMES | RES_DNSRCH);
}
#else
/* For a resolver without state, such as musl's. */
static bool res_exchange(struct resolver_state *aside)
{
	(void)aside;
	return true;
}

static void res_put_back(const struct resolver_state *aside)
{
	(void)aside;
}

static void resolver_state_limit(const struct resolver_state *aside, int ms)
{
	(void)aside;
	(void)ms;
}

/* musl uses the search list only for names with fewer dots than ndots of resolv.conf, by default for those without. */
static void resolver_state_absolute(void)
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

static bool resolver_state_set_aside(struct resolver_state *aside)
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

static void resolver_state_put_back(const struct resolver_state *aside)
{
	res_put_back(aside);
	thread_put_back(aside);
}

#ifndef EAI_NODATA
#define EAI_NODATA EAI_NONAME /* musl */
#endif

#define TARGETS_MAX 16     /* of one service */
#define TARGET_MS 2000     /* for each target, if that much is left: two tries of a name server */
#define PLACES_KEPT 2      /* for each later target: one a family */
#define RESPONSE_MAX 65535 /* bytes, over TCP */

/* One resolution: its output and its input. */
struct search {
	union sockaddr_ip *out;
	size_t count, max;
	struct resolver_state aside;
	int64_t deadline; /* of clock_ns() */
	const char *reason; /* the latest reason for finding nothing */
};

static _Thread_local bool running __attribute__((tls_model("initial-exec")));

static const char no_memory[] = "no memory to resolve the converter's name";

/* The reason for each error; the last in each list stands for all other errors. */
static const struct {
	int error;
	const char *reason;
} host_reasons[] = {
	{ 0, "no address of the converter's name can be used" },
	{ EAI_NONAME, "the converter's name has no address" },
	{ EAI_NODATA, "the converter's name has no address" },
	{ EAI_AGAIN, "no name server answers for the converter's name" },
	{ EAI_MEMORY, no_memory },
	{ EAI_FAIL, "the converter's name can't be resolved" },
}, service_reasons[] = {
	{ 0, "the SRV records name no converter that can be used" },
	{ -ENOENT, "the converter's name has no SRV record" },
	{ -EAGAIN, "no name server answers for the SRV records" },
	{ -ENOMEM, no_memory },
	{ -EBADMSG, "the answer for the SRV records is malformed" },
};

static int milliseconds_left(const struct search *search)
{
	int64_t ns = search->deadline - clock_ns();

	return ns > 0 ? (int)(ns / CLOCK_NS_PER_MS) : 0;
}

/* Filtering name servers answer 0.0.0.0 and ::, and Linux would connect these to itself. */
static bool is_usable(const union sockaddr_ip *addr)
{
	struct in6_addr in6 = sockaddr_ip_in6(addr);
	const uint8_t *v4 = &in6.s6_addr[12];

	if (IN6_IS_ADDR_V4MAPPED(&in6))
		return v4[0] != 0 && v4[0] < 224;
	return !IN6_IS_ADDR_UNSPECIFIED(&in6) && !IN6_IS_ADDR_MULTICAST(&in6);
}

static bool is_known(const struct search *search, const union sockaddr_ip *addr)
{
	for (size_t i = 0; i < search->count; i++)
		if (sockaddr_ip_equal(&search->out[i], addr))
			return true;
	return false;
}

/* Reads one of getaddrinfo's addresses; returns false if it isn't usable. */
static bool address_read(const struct search *search, const struct addrinfo *ai,
			 union sockaddr_ip *out)
{
	return sockaddr_ip_from(out, ai->ai_addr, ai->ai_addrlen) && is_usable(out) &&
	       !is_known(search, out);
}

/* Shares @room places among the families. Sets @quota to the number of addresses of each, index 1 for IPv6. */
static void share(const struct search *search, const struct addrinfo *list, size_t room,
		  size_t quota[2])
{
	size_t half[2] = { room / 2, room - room / 2 };
	union sockaddr_ip addr;

	quota[0] = quota[1] = 0;
	for (; list; list = list->ai_next)
		if (address_read(search, list, &addr))
			quota[addr.sa.sa_family == AF_INET6]++;
	for (int i = 0; i < 2; i++) {
		size_t other = quota[!i] < half[!i] ? quota[!i] : half[!i];

		if (quota[0] + quota[1] > room && quota[i] > room - other)
			quota[i] = room - other;
	}
}

/* Adds a host's addresses, @room at the most, within @ms. */
static void host_add(struct search *search, const char *name, uint16_t port, size_t room, int ms)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char service[sizeof("65535")];
	union sockaddr_ip addr;
	size_t quota[2], i = 0;
	int error;

	snprintf(service, sizeof(service), "%u", port);
	resolver_state_limit(&search->aside, ms);
	error = getaddrinfo(name, service, &hints, &list);
	while (i + 1 < ARRAY_SIZE(host_reasons) && host_reasons[i].error != error)
		i++;
	search->reason = host_reasons[i].reason;
	if (error)
		return;
	share(search, list, room, quota);
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		size_t *left;

		if (!address_read(search, ai, &addr))
			continue;
		left = &quota[addr.sa.sa_family == AF_INET6];
		if (*left > 0) {
			search->out[search->count++] = addr;
			--*left;
		}
	}
	freeaddrinfo(list);
}

static uint32_t random_below(void *unused, uint32_t limit)
{
	uint32_t number;

	(void)unused;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
		number = (uint32_t)clock_ns() * 2654435761u; /* early in the boot any number will do */
	return (uint32_t)((uint64_t)number * limit >> 32);
}

/* Asks for the targets of a service. Returns their number, in the order to try them, or -errno as srv_parse(). */
static int targets_ask(const char *owner, struct srv_target targets[TARGETS_MAX])
{
	uint8_t *response = malloc(RESPONSE_MAX);
	int ret;

	if (!response)
		return -ENOMEM;
	h_errno = 0;
	ret = res_query(owner, ns_c_in, ns_t_srv, response, RESPONSE_MAX);
	if (ret >= 0)
		ret = srv_parse(response, ret < RESPONSE_MAX ? (size_t)ret : RESPONSE_MAX, owner,
				targets, TARGETS_MAX);
	else
		ret = h_errno == HOST_NOT_FOUND || h_errno == NO_DATA ? -ENOENT : -EAGAIN;
	free(response);
	if (ret > 0)
		srv_order(targets, (size_t)ret, random_below, NULL);
	return ret;
}

/* Returns how many milliseconds of the remaining time one of @targets may take. */
static int share_of_time(const struct search *search, int targets)
{
	int left = milliseconds_left(search), each = left / targets;

	if (each < TARGET_MS)
		each = TARGET_MS;
	return each < left ? each : left;
}

/* Adds the addresses of a service's targets. */
static void service_add(struct search *search, const char *owner)
{
	struct srv_target *targets = calloc(TARGETS_MAX, sizeof(*targets));
	int count = -ENOMEM;
	size_t i = 0;

	resolver_state_limit(&search->aside, milliseconds_left(search));
	resolver_state_absolute();
	if (targets)
		count = targets_ask(owner, targets);
	while (i + 1 < ARRAY_SIZE(service_reasons) && service_reasons[i].error != count)
		i++;
	search->reason = service_reasons[i].reason;
	for (int n = 0; n < count && search->count < search->max; n++) {
		size_t room = search->max - search->count;
		size_t kept = (size_t)(count - n - 1) * PLACES_KEPT;
		int ms = share_of_time(search, count - n);

		if (n > 0 && ms == 0)
			break;
		if (kept + PLACES_KEPT > room)
			kept = room > PLACES_KEPT ? room - PLACES_KEPT : 0;
		host_add(search, targets[n].name, targets[n].port, room - kept, ms);
	}
	free(targets);
}

bool resolve_is_running(void)
{
	return running;
}

size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out,
			 size_t max, const char **reason)
{
	struct search search = { .out = out, .max = max, .reason = no_memory };

	if (running) {
		search.reason = "the converter's name is being resolved";
	} else if (resolver_state_set_aside(&search.aside)) {
		running = true;
		search.deadline = clock_ns() + timeout_ms * CLOCK_NS_PER_MS;
		if (srv_is_service(name))
			service_add(&search, name);
		else
			host_add(&search, name, port, max, timeout_ms);
		running = false;
		resolver_state_put_back(&search.aside);
	}
	if (!search.count && reason)
		*reason = search.reason;
	return search.count;
}
