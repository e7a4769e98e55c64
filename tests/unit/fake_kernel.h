/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_kernel.h - a small deterministic model of the kernel, behind the table `next` of the shim
 *
 * A Check program that links libshimworld.la has the shim's own sources for sockets, connections, waits and hooks, and
 * in the place of the kernel this model: sockets, their options, epoll instances, a network of hosts, a clock. Nothing ever
 * waits in real time. What isn't modelled ends the program with a message, and never returns success.
 *
 * Replaced at link time:
 *   the table `next`, next_*_now()     fake_kernel.c, fake_socket.c, fake_options.c, fake_epoll.c
 *   clock_read_ns()                    fake_kernel.c: time passes only while every thread waits
 *   pthread_sigmask(), sched_yield()   fake_threads.c: a mask for each thread, and points at which threads change turns
 *   paths.c (netlink), registrations.c (/proc), rights.c, resolve.c (name servers), log.c   fake_beneath.c
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

/* X(name): the calls that are modelled, as they are counted and made to fail */
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

/* What a host says on one of its connections. */
struct fake_answer {
	const void *bytes;
	size_t len;
	size_t piece;    /* bytes that arrive at once; 0: all of them */
	int after_ms;    /* after the request, or of a server the handshake; and between two pieces */
	bool fin;        /* and the end of the stream behind them */
	int error;       /* or a reset (ECONNRESET) */
};

/* A host, and what becomes of the SYNs that are sent to it. All zero but the address: it accepts, and says nothing. */
struct fake_host {
	const char *address; /* with a port */
	bool is_server;      /* it isn't a converter: all that arrives is the application's, and it answers at once */
	bool silent;         /* no SYN is answered */
	bool dead;           /* SYNs are answered, and nothing is acknowledged afterwards */
	int refuses;         /* errno that a SYN is answered with: ECONNREFUSED, EHOSTUNREACH … */
	int at_once;         /* errno of connect(2) itself: ENETUNREACH … */
	int synack_ms;       /* from the SYN to its answer */
	bool no_mptcp;       /* MP_CAPABLE is lost on the way to it */
	bool loses_mptcp;    /* what is behind the handshake loses its options */
	bool takes_no_data;  /* data in a SYN isn't acknowledged */
	bool no_timestamps;
	struct fake_answer answers[FAKE_ANSWERS_MAX]; /* of its first, second … connection; the last one's repeats */
	size_t answer_count;
};

/* @host: copied */
void fake_host_add(const struct fake_host *host);

/* Forgets what @address was, so that it can be another host. */
void fake_host_remove(const char *address);

/* How many SYNs were sent to this host; and the bytes that it has received on its last connection. */
unsigned int fake_host_syns(const char *address);
size_t fake_host_received(const char *address, const uint8_t **bytes);

/* --- what a test can look at, and do, beneath the shim --- */

struct fake_socket;

/* The socket that @fd refers to; none ends the program. */
struct fake_socket *fake_socket_of(int fd);

/* The peer's doings, at this moment, on the connection that @fd's socket has. */
void fake_synack(int fd);
void fake_deliver(int fd, const void *bytes, size_t len);
void fake_fin(int fd);
void fake_reset(int fd, int error);

int fake_protocol(int fd);
int fake_option(int fd, int level, int name);
bool fake_is_connected(int fd);
unsigned int fake_port(int fd); /* of the peer, host byte order; 0: none */

/* The events that the epoll instance @epfd has @fd registered with; 0: it isn't registered. */
uint32_t fake_registered(int epfd, int fd);

/* The registration number @i of an instance; false: there are fewer. */
bool fake_registration_get(int epfd, int i, int *fd, struct epoll_event *event);

int fake_epoll_create(void);

/* How many descriptors are open. */
unsigned int fake_open_count(void);

/* Data in SYNs is forbidden by sysctl, or not. */
void fake_allow_fastopen(bool allowed);

/* What networks_may_be_several() answers. */
extern bool fake_several_paths;

/* The process uses io_uring. */
extern bool fake_rings;

/* What the names of converters resolve to: NULL for nothing. */
extern const char *fake_resolved;

/* The last line of the shim's log. */
const char *fake_log_last(void);

/* --- time --- */

/* Milliseconds since the start of the run. */
int64_t fake_now_ms(void);

/* Time passes, with what happens in it, while no thread of the application does anything. */
void fake_pass_ms(int ms);

/* For how long each thread that was woken from a wait doesn't get a CPU, in ms. */
extern int fake_late_ms;

/* --- calls that fail --- */

/* Call number @number (from 0) fails with @error, and does nothing (close(2) closes nevertheless). -1: none does. */
void fake_fail(int number, int error);

/* How many calls there were since the last fake_fail(), and which. */
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
 * @schedule: at which points, counted over all threads from 0, the turn goes to the other thread, in ascending order
 * @count: of them
 * Returns how many points there were. All threads have ended.
 */
int fake_threads_run(fake_thread *const bodies[FAKE_THREADS_MAX], void *arg, const int *schedule, size_t count, int first);

/* --- failure --- */

/* Ends the process with a message: the model was asked what it doesn't know, or an invariant doesn't hold. */
__attribute__((noreturn, format(printf, 1, 2))) void fake_die(const char *format, ...);

/* Called whenever the shim may have changed something: before each call, and where a thread claims or releases. */
extern void (*fake_observer)(void);

/* What is being run, for messages. */
extern char fake_context[200];

#endif
