/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_retry.c - makes blind requests again, many at a time, in a thread of its own */
#include "config.h"

#include "supervise/blind.h"

#include "client/handshake.h"
#include "common/clock.h"
#include "supervise/connection.h"
#include "supervise/stand_in.h"
#include "supervise/tracee.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The program has its EINPROGRESS and waits for the socket, while the supervisor ends the attempt and begins another one. Three
 * things must not happen:
 *
 * 	The SYN+ACK comes, the program writes, and then we end the attempt: bytes would be lost without an error. So we end it by
 * 	shutdown(2). Before the SYN+ACK, shutdown() ends the attempt and nothing more (inet_shutdown() in the kernel, under the socket's
 * 	lock). After it, shutdown() sends a FIN; then we reset the connection, so that it fails rather than being cut short.
 *
 * 	The program's epoll instances see the socket hung up in between, and event loops (tokio's) never forget that. So we withdraw the
 * 	registrations for that moment. Threads in poll(2) and select(2) would see it, too (curl then gives up), so we stop them meanwhile
 * 	(pause.c).
 *
 * 	The supervisor's duplicate keeps a socket alive that the program has closed. So we hold one for this moment only.
 *
 * We make no request again over plain TCP: the disconnect leaves ECONNRESET in its SO_ERROR, which a waiting thread would see.
 */

void blind_retry_note(struct blind_retry *retry, int fd, const void *message, size_t len)
{
	retry->message = malloc(len);
	if (!retry->message)
		return;
	memcpy(retry->message, message, len);
	retry->len = len;
	retry->cookie = kernel_cookie(fd);
	retry->inode = places_socket(fd);
}

/* Returns a duplicate, to be closed, of the descriptor @program_fd of the thread @tid if it refers to the socket; else -1. */
static int open_socket(const struct blind_retry *retry, pid_t tid, int program_fd)
{
	int fd = tracee_get_fd(tid, program_fd);

	if (fd >= 0 && kernel_cookie(fd) == retry->cookie)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Makes the request again, on @fd of open_socket(), over the network of @start. @count: how often it was made before. Disconnects the
 * socket for a moment. Returns whether it has sent the SYN. If not, the connection continues unchanged, or it is over because the SYN+ACK
 * came meanwhile, or because binding or sending failed.
 */
static bool send_again(const struct blind_retry *retry, int fd, const struct path_start *start, unsigned int count)
{
	ssize_t sent;

	if (retry->counted)
		handshake_count_repeat(retry->message, count);
	if (path_start_needs_socket(start, fd) || kernel_tcp_info(fd).tcpi_state != TCPINFO_SYN_SENT || shutdown(fd, SHUT_WR) != 0)
		return false;
	/* The SYN has to carry the whole message, as it did before: the program has been told that its part was sent. */
	if (kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE && path_start_bind(start, fd) == 0) {
		sent = sendto(fd, retry->message, retry->len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &retry->to.sa,
			      sockaddr_ip_len(&retry->to));
		if (sent == (ssize_t)retry->len)
			return true;
	}
	kernel_disconnect(fd);
	return false;
}

/* --- many requests at a time, in a thread --- */

/*
 * To make a request again takes some milliseconds: we search all descriptors and registrations of the program, and stop its threads in
 * poll(2) and select(2), which need a CPU to stop. Meanwhile the supervisor has to answer other connect()s. And when many SYNs are lost at
 * once, we have to send the last one before the kernel sends one without data, a tenth of a second later. So one thread makes all due
 * requests again, and ends:
 *
 * 	It has a descriptor table of its own, with retry_ready alone in it. So it can put programs' sockets under the programs' numbers
 * 	(stand_in.c), and keeps no socket alive that the program has closed.
 * 	When it ends, all threads that it has stopped continue (pause.c).
 *
 * While it runs the supervisor must not wait for its children: waitpid() would report those that the thread has stopped.
 */

#define LOOK_NS 50000
#define BEFORE_KERNEL_NS (50 * CLOCK_NS_PER_MS) /* we search the process for its sockets' places and send its SYNs in less than this */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

static struct {
	struct blind_retry_order orders[BLIND_RETRY_MAX];
	struct holder {
		pid_t tid, process; /* a thread that has the socket, or 0; and its process */
		int program_fd;     /* the thread's descriptor number */
		int sock;           /* our duplicate */
		bool cancelled;
	} holders[BLIND_RETRY_MAX];
	int count;
	int ready; /* the thread's descriptor of supervision.retry_ready */
	bool busy;
	sem_t alone; /* posted when the thread has a descriptor table of its own */
	pthread_t thread;
	pid_t tid; /* the thread's number */
} work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void blind_retry_lock(void)
{
	pthread_mutex_lock(&lock);
}

void blind_retry_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

bool blind_retry_cancel(const void *owner)
{
	for (int i = 0; work.busy && i < work.count; i++) {
		if (work.orders[i].owner != owner)
			continue;
		work.holders[i].cancelled = true;
		return true;
	}
	return false;
}

/* --- finding the thread that has the socket --- */

struct search {
	const struct blind_retry *retry;
	struct holder *holder;
};

static bool holds(const struct search *search, pid_t tid, int program_fd)
{
	int fd = open_socket(search->retry, tid, program_fd);

	if (fd < 0)
		return false;
	close(fd);
	search->holder->tid = tid;
	search->holder->program_fd = program_fd;
	return true;
}

static bool look_in(void *context, pid_t process)
{
	const struct search *search = context;
	struct places places = { .socket = search->retry->inode };

	places_find_all(&places, 1, process);
	for (int i = 0; i < places.fd_count && !search->holder->tid; i++)
		holds(search, process, places.fds[i]);
	return !search->holder->tid;
}

/*
 * Finds a thread that has the socket. Most programs leave a socket where it is while they connect it. Others give it another number, or
 * hand it to another process, so that we search all processes.
 */
static void holder_find(int order)
{
	const struct blind_retry *retry = work.orders[order].retry;
	struct holder *holder = &work.holders[order];
	struct search search = { retry, holder };

	if (!holds(&search, retry->tid, retry->program_fd) && look_in(&search, tracee_process(retry->tid)))
		tracee_each_process(look_in, &search);
	if (holder->tid)
		holder->process = tracee_process(holder->tid);
}

/* --- making requests again --- */

/* Makes one request again, with the socket's registrations withdrawn meanwhile. */
static void retry_one(struct blind_retry_order *order, const struct holder *holder, const struct places *places)
{
	places_change(places, holder->sock, EPOLL_CTL_DEL);
	blind_retry_lock();
	order->sent_at = clock_ns();
	order->sent = !holder->cancelled && send_again(order->retry, holder->sock, order->start, order->count);
	blind_retry_unlock();
	places_change(places, holder->sock, EPOLL_CTL_ADD);
	order->sent = order->sent && kernel_address(holder->sock, &order->local);
	order->device = kernel_get(holder->sock, SOL_SOCKET, SO_BINDTOIFINDEX, 0);
}

/* Opens the sockets of the process, and finds their places in it. Returns the number of its orders, whose indices are in @which. */
static int process_find(pid_t process, int which[static BLIND_RETRY_MAX], struct places *places)
{
	int count = 0;

	for (int i = 0; i < work.count; i++) {
		struct holder *holder = &work.holders[i];

		if (holder->process != process)
			continue;
		holder->sock = open_socket(work.orders[i].retry, holder->tid, holder->program_fd);
		if (holder->sock < 0)
			continue;
		work.orders[i].found = true;
		places[count].socket = work.orders[i].retry->inode;
		which[count++] = i;
	}
	if (!count)
		return 0;
	places_find_all(places, count, process);
	/* A thread may have a descriptor table of its own. */
	for (int i = 0; i < count; i++)
		if (!places[i].fd_count)
			places_find_all(&places[i], 1, work.holders[which[i]].tid);
	return count;
}

/* Returns when to stop waiting for the process's threads, in nanoseconds of CLOCK_MONOTONIC: shortly before Linux repeats a SYN. */
static int64_t pause_until(pid_t process)
{
	int64_t until = INT64_MAX;

	for (int i = 0; i < work.count; i++) {
		const int64_t kernel_at = work.orders[i].syn_at + BLIND_KERNEL_REPEATS_NS;

		if (work.holders[i].process == process && kernel_at < until)
			until = kernel_at;
	}
	return until - BEFORE_KERNEL_NS;
}

/* Makes all requests of a process again. Stops its threads before it looks for the sockets' places. */
static void process_act(pid_t process, struct places *places)
{
	int which[BLIND_RETRY_MAX], limit = 0, count, ready;

	pause_process(process, pause_until(process));
	count = process_find(process, which, places);
	for (int i = 0; i < count; i++)
		limit = places_limit(&places[i]) > limit ? places_limit(&places[i]) : limit;
	ready = fcntl(work.ready, F_DUPFD_CLOEXEC, limit + 1);
	if (ready < 0)
		return; /* the program uses numbers beyond our limit: the kernel alone repeats its SYNs */
	close(work.ready);
	work.ready = ready;
	for (int i = 0; i < count; i++)
		work.holders[which[i]].sock = places_move_beyond(work.holders[which[i]].sock, limit);
	for (int i = 0; i < count; i++) {
		const struct holder *holder = &work.holders[which[i]];

		if (holder->sock >= 0) {
			retry_one(&work.orders[which[i]], holder, &places[i]);
			close(holder->sock);
		}
	}
}

static bool is_first_of(int order)
{
	for (int i = 0; i < order; i++)
		if (work.holders[i].process == work.holders[order].process)
			return false;
	return work.holders[order].process;
}

/* Gives the thread a descriptor table of its own, and closes all descriptors in it but @fd. */
static bool close_all_but(unsigned int fd)
{
	return syscall(SYS_close_range, 0, fd - 1, CLOSE_RANGE_UNSHARE) == 0 && syscall(SYS_close_range, fd + 1, ~0u, 0) == 0;
}

static void *run(void *places)
{
	const bool alone = close_all_but((unsigned int)supervision.retry_ready);
	uint64_t one = 1;

	work.ready = supervision.retry_ready;
	work.tid = (pid_t)syscall(SYS_gettid);
	sem_post(&work.alone);
	for (int i = 0; alone && i < work.count; i++)
		holder_find(i);
	for (int i = 0; alone && i < work.count; i++)
		if (is_first_of(i))
			process_act(work.holders[i].process, places);
	if (write(work.ready, &one, sizeof(one)) != sizeof(one)) {
		/* the counter is full, and so it is readable */
	}
	free(places);
	return NULL;
}

bool blind_retry_start(const struct blind_retry_order *orders, int count)
{
	struct places *places = calloc((size_t)count, sizeof(*places));

	if (!places || sem_init(&work.alone, 0, 0) != 0) {
		free(places);
		return false;
	}
	memcpy(work.orders, orders, (size_t)count * sizeof(*orders));
	memset(work.holders, 0, sizeof(work.holders));
	work.count = count;
	if (pthread_create(&work.thread, NULL, run, places) != 0) {
		free(places);
		return false;
	}
	while (sem_wait(&work.alone) != 0)
		continue;
	work.busy = true;
	return true;
}

bool blind_retry_is_busy(void)
{
	return work.busy;
}

/*
 * Waits until the thread traces nothing any more. pthread_join(3) returns a little before Linux releases the threads that it traced, and
 * Linux does so before it forgets the thread's number. In between another tracer couldn't stop the program's threads, and waitpid() would
 * report these as stopped.
 */
static void await_gone(void)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };

	pthread_join(work.thread, NULL);
	while (syscall(SYS_tgkill, getpid(), work.tid, 0) == 0)
		nanosleep(&look, NULL);
}

const struct blind_retry_order *blind_retry_end(int *count)
{
	await_gone();
	work.busy = false;
	*count = work.count;
	return work.orders;
}
