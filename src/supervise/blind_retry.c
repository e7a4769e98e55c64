/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_retry.c - make blind requests again, many at a time, while the supervisor goes on */
#include "config.h"

#include "supervise/blind_retry.h"

#include "client/handshake.h"
#include "common/clock.h"
#include "supervise/connection.h"
#include "supervise/kernel.h"
#include "supervise/pause.h"
#include "supervise/places.h"
#include "supervise/tracee.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The program has its EINPROGRESS and waits for the socket, while the supervisor ends the attempt and begins another one. Three
 * things must not happen:
 *
 * 	the SYN+ACK comes, the program writes, and then the attempt is ended: bytes would be lost without an error. So it is ended by
 * 	shutdown(2), which ends an attempt and nothing more if there is no SYN+ACK yet (inet_shutdown() in the kernel, under the
 * 	socket's lock). If there is one it sends a FIN instead; then the connection is reset, and fails rather than being cut short.
 *
 * 	the program's epoll instances see the socket hung up in between, and event loops (tokio's) never forget that. So its
 * 	registrations are withdrawn for that moment. Threads in poll(2) and select(2) would see it, too (curl then gives up), and are
 * 	stopped meanwhile (blind_retry.c).
 *
 * 	the supervisor's duplicate keeps a socket alive that the program has closed. So it has one for this moment only.
 *
 * Plain TCP has ECONNRESET in SO_ERROR after it, which such a thread would see: these requests aren't made again.
 */

void blind_retry_note(struct blind_retry *repeat, int fd, const void *message, size_t len)
{
	repeat->message = malloc(len);
	if (!repeat->message)
		return;
	memcpy(repeat->message, message, len);
	repeat->len = len;
	repeat->cookie = kernel_cookie(fd);
	repeat->inode = places_socket(fd);
}

int blind_retry_open(const struct blind_retry *repeat, pid_t tid, int at)
{
	int fd = tracee_get_fd(tid, at);

	if (fd >= 0 && kernel_cookie(fd) == repeat->cookie)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool blind_retry_send(const struct blind_retry *repeat, int fd, const struct path_start *start, unsigned int count)
{
	ssize_t sent;

	if (repeat->counted)
		handshake_count_repeat(repeat->message, count);
	if (kernel_tcp_info(fd).tcpi_state != TCPINFO_SYN_SENT || shutdown(fd, SHUT_WR) != 0)
		return false;
	/* All of the message has to go with the SYN, as it did before: the program counts on its part of it. */
	if (kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE && path_start_bind(start, fd) == 0) {
		sent = sendto(fd, repeat->message, repeat->len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &repeat->to.sa,
			      sockaddr_ip_len(&repeat->to));
		if (sent == (ssize_t)repeat->len)
			return true;
	}
	kernel_disconnect(fd);
	return false;
}

/* --- make blind requests again, many at a time, while the supervisor goes on --- */

/*
 * A request that is made again takes some milliseconds: all descriptors and registrations of the program are gone through, and its
 * threads in poll(2) and select(2) are stopped, for which they need a CPU. Meanwhile other connect()s are to be answered. And where
 * many SYNs are lost at once, the last one has to be sent before the kernel sends one without data, a tenth of a second later. So all
 * requests that are due are made again together, by a thread that ends with that:
 *
 * 	its table of descriptors is its own, and empty: it puts programs' sockets under the programs' numbers (places.c), and nothing
 * 	of it keeps a socket alive that the program has closed
 * 	with it all threads go on that it has stopped (pause.c)
 *
 * While it runs the supervisor must not wait for its children, since it would be told of those that are stopped.
 */

#define LOOK_NS 50000

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

static struct {
	struct blind_retry_order orders[BLIND_RETRY_MAX];
	struct holder {
		pid_t tid, process; /* a thread that has the socket, 0: none was found; and its process */
		int at;             /* by this number */
		int sock;           /* a duplicate */
		bool cancelled;
	} holders[BLIND_RETRY_MAX];
	int count;
	int ready; /* supervision.retry_ready, in the thread */
	bool busy;
	sem_t alone; /* the thread's table of descriptors is its own */
	pthread_t thread;
	pid_t tid; /* its number */
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

/* --- who has the socket --- */

struct search {
	const struct blind_retry *repeat;
	struct holder *holder;
};

static bool holds(const struct search *search, pid_t tid, int at)
{
	int fd = blind_retry_open(search->repeat, tid, at);

	if (fd < 0)
		return false;
	close(fd);
	search->holder->tid = tid;
	search->holder->at = at;
	return true;
}

static bool look_in(void *context, pid_t process)
{
	const struct search *search = context;
	struct places places = { .socket = search->repeat->inode };

	places_find_all(&places, 1, process);
	for (int i = 0; i < places.fd_count && !search->holder->tid; i++)
		holds(search, process, places.fds[i]);
	return !search->holder->tid;
}

/*
 * Most programs leave a socket where it is while they connect it. Others give it another number, or have another process go on with it,
 * which is looked for among all that there are.
 */
static void holder_find(int order)
{
	const struct blind_retry *repeat = work.orders[order].repeat;
	struct holder *holder = &work.holders[order];
	struct search search = { repeat, holder };

	if (!holds(&search, repeat->tid, repeat->at) && look_in(&search, tracee_process(repeat->tid)))
		tracee_each_process(look_in, &search);
	if (holder->tid)
		holder->process = tracee_process(holder->tid);
}

/* --- making requests again --- */

/* Makes one request again. */
static void make(struct blind_retry_order *order, const struct holder *holder, const struct places *places)
{
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	places_withdraw(places, holder->sock);
	blind_retry_lock();
	order->sent_at = clock_ns();
	order->sent = !holder->cancelled && blind_retry_send(order->repeat, holder->sock, order->start, order->count);
	blind_retry_unlock();
	places_register(places, holder->sock);
	order->sent = order->sent && getsockname(holder->sock, &local.sa, &len) == 0 && sockaddr_ip_from(&order->local, &local.sa, len);
}

/* Opens the sockets of the process, and looks where it has them. Returns how many orders there are, whose numbers are in @which. */
static int process_find(pid_t process, int which[static BLIND_RETRY_MAX], struct places *places)
{
	int count = 0;

	for (int i = 0; i < work.count; i++) {
		struct holder *holder = &work.holders[i];

		if (holder->process != process)
			continue;
		holder->sock = blind_retry_open(work.orders[i].repeat, holder->tid, holder->at);
		if (holder->sock < 0)
			continue;
		work.orders[i].found = true;
		places[count].socket = work.orders[i].repeat->inode;
		which[count++] = i;
	}
	if (!count)
		return 0;
	places_find_all(places, count, process);
	/* A thread may have a table of descriptors of its own. */
	for (int i = 0; i < count; i++)
		if (!places[i].fd_count)
			places_find_all(&places[i], 1, work.holders[which[i]].tid);
	return count;
}

/* Has the descriptor have a number beyond @limit. */
static int move_beyond(int fd, int limit)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, limit + 1);

	close(fd);
	return moved;
}

/* Makes all requests of a process again. Its threads stand still before it is looked what they wait for. */
static void process_act(pid_t process, struct places *places)
{
	int which[BLIND_RETRY_MAX], limit = 0, count;

	pause_process(process);
	count = process_find(process, which, places);
	for (int i = 0; i < count; i++)
		limit = places_limit(&places[i]) > limit ? places_limit(&places[i]) : limit;
	work.ready = move_beyond(work.ready, limit);
	for (int i = 0; i < count; i++)
		work.holders[which[i]].sock = move_beyond(work.holders[which[i]].sock, limit);
	for (int i = 0; i < count; i++) {
		const struct holder *holder = &work.holders[which[i]];

		if (holder->sock >= 0) {
			make(&work.orders[which[i]], holder, &places[i]);
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

/* Closes all descriptors but one, in a table of the thread's own. */
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
 * pthread_join(3) returns a little before Linux lets go what the thread traces, which is before it forgets the thread's number. Meanwhile
 * another tracer couldn't stop the program's threads, and the supervisor would be told that these were stopped.
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
