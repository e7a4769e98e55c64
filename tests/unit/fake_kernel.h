/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_kernel.h - a small deterministic model of the kernel, behind the table `next` of the shim
 *
 * A Check program that links libshimworld.la has the shim's own sources for sockets, connections, waits and hooks, and
 * this model in place of the kernel: sockets, their options, epoll instances, timers, a network of hosts, a clock. Nothing ever
 * waits in real time. A call that isn't modelled ends the program with a message, and never returns success.
 *
 * Replaced at link time:
 *   the table `next`, next_*_now()     fake_kernel.c, fake_socket.c, fake_options.c, fake_epoll.c
 *   clock_read_ns()                    fake_kernel.c: time passes only while every thread waits, or in fake_pass_ms()
 *   timerfd_create(), timerfd_settime()   fake_epoll.c
 *   pthread_sigmask(), sched_yield()   fake_threads.c: a mask for each thread, and points at which threads change turns
 *   networks.c (netlink), registrations.c and rings.c (/proc), rights.c, resolve.c (name servers), log.c   fake_beneath.c
 * Real: usermem.c, which copies within this process, mmap(2), and kcmp(2), which knows no descriptor of the
 * model, so that two epoll descriptors are the same instance if they have the same number.
 *
 * A run is a process of its own (shim_world.h), since much of what the shim has learned stays for good.
 */
#ifndef TESTS_UNIT_FAKE_KERNEL_H
#define TESTS_UNIT_FAKE_KERNEL_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define FAKE_FD_MIN 1000 /* no descriptor of the test program itself is as high */

/* X(name): the calls that are modelled, which tests count and let fail */
#define FAKE_CALLS(X)                                                                              \
	X(socket) X(connect) X(bind) X(listen) X(getpeername) X(getsockname) X(getsockopt)         \
	X(setsockopt) X(shutdown) X(close) X(dup) X(dup2) X(dup3) X(fcntl) X(ioctl) X(read) X(recv) \
	X(write) X(send) X(sendto) X(sendmsg) X(poll) X(ppoll) X(epoll_ctl) X(epoll_wait) X(epoll_pwait)

enum fake_call {
#define FAKE_ENUM(name) FAKE_##name,
	FAKE_CALLS(FAKE_ENUM)
#undef FAKE_ENUM
	FAKE_CALL_COUNT
};

const char *fake_call_name(enum fake_call call);

/* --- the network --- */

#define FAKE_ANSWERS_MAX 4

/* A host's answer on one of its connections. */
struct fake_answer {
	const void *bytes;
	size_t len;
	size_t piece;    /* bytes that arrive at once; 0: all of them */
	int after_ms;    /* after the request, or a server's handshake; and between two pieces */
	bool fin;        /* the stream ends behind them */
	int error;       /* or a reset comes (ECONNRESET) */
};

/* A host, and how it treats SYNs. If all is zero but the address, it accepts connections, and says nothing. */
struct fake_host {
	const char *address; /* with a port */
	bool is_server;      /* it isn't a converter: it needs no request, and answers after the handshake */
	bool silent;         /* no SYN is answered */
	bool dead;           /* SYNs are answered, and nothing is acknowledged afterwards */
	int refuses;         /* errno that a SYN is answered with: ECONNREFUSED, EHOSTUNREACH … */
	int at_once;         /* errno of connect(2) itself, or of the first output that follows a deferred one: ENETUNREACH … */
	bool no_route;       /* there is no route, so a connect(2) that would be deferred fails at once, too */
	int synack_ms;       /* from the SYN to its answer */
	bool no_mptcp;       /* MP_CAPABLE is lost on the way to it */
	bool loses_mptcp;    /* segments behind the handshake lose its options */
	bool takes_no_data;  /* data in a SYN isn't acknowledged */
	bool no_timestamps;
	struct fake_answer answers[FAKE_ANSWERS_MAX]; /* to its first, second … connection; the last one repeats */
	size_t answer_count;
};

/* @host: copied */
void fake_host_add(const struct fake_host *host);

/* Removes the host at @address, which then can be another one. */
void fake_host_remove(const char *address);

/* Returns the number of SYNs to this host; and the bytes that it has received on its last connection. */
unsigned int fake_host_syns(const char *address);
size_t fake_host_received(const char *address, const uint8_t **bytes);

/* --- what a test can look at, and do, beneath the shim --- */

struct fake_socket;

/* Returns the socket of @fd; if it isn't one, the program ends. */
struct fake_socket *fake_socket_of(int fd);

/* The peer acts now on the connection of @fd. */
void fake_synack(int fd);
void fake_deliver(int fd, const void *bytes, size_t len);
void fake_fin(int fd);
void fake_reset(int fd, int error);

int fake_protocol(int fd);
int fake_option(int fd, int level, int name);
bool fake_is_connected(int fd);
unsigned int fake_port(int fd); /* of the peer, host byte order; 0: none */

/* Returns the events for which @fd is registered in the epoll instance @epfd, but EPOLLERR and EPOLLHUP; 0: it isn't. */
uint32_t fake_registered(int epfd, int fd);

/* Reads registration number @i of an instance; false: there are fewer. */
bool fake_registration_get(int epfd, int i, int *fd, struct epoll_event *event);

int fake_epoll_create(void);

/* How many descriptors are open. */
unsigned int fake_open_count(void);

/* Sets whether the sysctl allows data in SYNs. */
void fake_allow_fastopen(bool allowed);

/* networks_may_be_several() returns this. */
extern bool fake_several_paths;

/* The process uses io_uring. */
extern bool fake_rings;

/* The address to which converters' names resolve; NULL: none. */
extern const char *fake_resolved;

/* The last line of the shim's log. */
const char *fake_log_last(void);

/* --- time --- */

/* Milliseconds since the start of the run. */
int64_t fake_now_ms(void);

/* Lets time pass, and events happen, while no thread of the application does anything. */
void fake_pass_ms(int ms);

/* For how many ms a thread that wakes from a wait gets no CPU. */
extern int fake_late_ms;

/* --- calls that fail --- */

/* Lets call number @number (from 0) fail with @error, without an effect (but close(2) closes). -1: no call fails. */
void fake_fail(int number, int error);

/* How many calls there were since the last fake_fail(), and call number @number. */
int fake_call_count(void);
enum fake_call fake_call_at(int number);

/* Was the call that was to fail reached? */
bool fake_has_failed(void);

/* Which call that was. */
enum fake_call fake_failed_call(void);

/* The errors that the man page of @call names: a list that ends with 0. */
const int *fake_errors_of(enum fake_call call);

/* --- threads: see fake_threads.c --- */

#define FAKE_THREADS_MAX 2

typedef void fake_thread(void *arg);

/*
 * fake_threads_run() - run threads that take turns as @schedule says
 * @schedule: the points, counted over all threads from 0, at which the turn goes to the other thread, in ascending order
 * @count: the number of these points; @first: the thread that begins
 * Returns how many points there were, when all threads have ended.
 */
int fake_threads_run(fake_thread *const bodies[FAKE_THREADS_MAX], void *arg, const int *schedule, size_t count, int first);

/* --- failure --- */

/* Ends the process with a message: a call isn't modelled, or an invariant doesn't hold. */
__attribute__((noreturn, format(printf, 1, 2))) void fake_die(const char *format, ...);

/* Called whenever the shim may have changed something: before each call, and where a thread claims or releases. */
extern void (*fake_observer)(void);

/* The name of the run, for messages. */
extern char fake_context[200];

#endif
