/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * again.c - make blind requests again, many at a time, while the supervisor goes on
 *
 * A request that is made again takes some milliseconds: all descriptors and registrations of the program are gone through, and its
 * threads in poll(2) and select(2) are stopped, for which they need a CPU. Meanwhile other connect()s are to be answered. And where
 * many SYNs are lost at once, the last one has to be sent before the kernel sends one without data, a tenth of a second later. So all
 * requests that are due are made again together, by a thread that ends with that:
 *
 *	its table of descriptors is its own, and empty: it puts programs' sockets under the programs' numbers (places.c), and nothing
 *	of it keeps a socket alive that the program has closed
 *	with it all threads go on that it has stopped (pause.c)
 *
 * While it runs the supervisor must not wait for its children, since it would be told of those that are stopped.
 */
#include "config.h"

#include "supervise/again.h"

#include "common/clock.h"
#include "supervise/connection.h"
#include "supervise/pause.h"
#include "supervise/places.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

static struct {
	struct again_order orders[AGAIN_MAX];
	pid_t processes[AGAIN_MAX];
	int socks[AGAIN_MAX]; /* duplicates of the programs' sockets, -1: it isn't there any more */
	int count;
	int ready; /* supervision.again_ready, in the thread */
	bool busy;
	sem_t alone; /* the thread's table of descriptors is its own */
	pthread_t thread;
} work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void again_lock(void)
{
	pthread_mutex_lock(&lock);
}

void again_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Makes one request again. */
static void make(struct again_order *order, const struct places *places, int sock)
{
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	places_withdraw(places, sock);
	again_lock();
	order->sent_at = clock_ns();
	order->sent = repeat_send(order->repeat, sock, order->begin, order->count);
	again_unlock();
	places_register(places, sock);
	order->sent = order->sent && getsockname(sock, &local.sa, &len) == 0 && sockaddr_ip_from(&order->local, &local.sa, len);
}

/* Opens the sockets of the process, and looks where it has them. Returns how many orders there are, whose numbers are in @which. */
static int process_find(pid_t process, int which[static AGAIN_MAX], struct places *places)
{
	int count = 0;

	for (int i = 0; i < work.count; i++) {
		if (work.processes[i] != process)
			continue;
		work.socks[i] = repeat_open(work.orders[i].repeat);
		if (work.socks[i] < 0)
			continue;
		work.orders[i].found = true;
		places[count].socket = places_socket(work.socks[i]);
		which[count++] = i;
	}
	if (!count)
		return 0;
	places_find_all(places, count, process);
	/* A thread may have a table of descriptors of its own. */
	for (int i = 0; i < count; i++)
		if (!places[i].fd_count)
			places_find_all(&places[i], 1, work.orders[which[i]].repeat->tid);
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
	int which[AGAIN_MAX], limit = 0, count;

	pause_process(process);
	count = process_find(process, which, places);
	for (int i = 0; i < count; i++)
		limit = places_limit(&places[i]) > limit ? places_limit(&places[i]) : limit;
	work.ready = move_beyond(work.ready, limit);
	for (int i = 0; i < count; i++)
		work.socks[which[i]] = move_beyond(work.socks[which[i]], limit);
	for (int i = 0; i < count; i++) {
		int sock = work.socks[which[i]];

		if (sock >= 0) {
			make(&work.orders[which[i]], &places[i], sock);
			close(sock);
		}
	}
}

static bool is_first_of(int order)
{
	for (int i = 0; i < order; i++)
		if (work.processes[i] == work.processes[order])
			return false;
	return true;
}

/* Closes all descriptors but one, in a table of the thread's own. */
static bool close_all_but(unsigned int fd)
{
	return syscall(SYS_close_range, 0, fd - 1, CLOSE_RANGE_UNSHARE) == 0 && syscall(SYS_close_range, fd + 1, ~0u, 0) == 0;
}

static void *run(void *places)
{
	const bool alone = close_all_but((unsigned int)supervision.again_ready);
	uint64_t one = 1;

	work.ready = supervision.again_ready;
	sem_post(&work.alone);
	for (int i = 0; alone && i < work.count; i++)
		work.processes[i] = tracee_process(work.orders[i].repeat->tid);
	for (int i = 0; alone && i < work.count; i++)
		if (is_first_of(i))
			process_act(work.processes[i], places);
	if (write(work.ready, &one, sizeof(one)) != sizeof(one)) {
		/* the counter is full, and so it is readable */
	}
	free(places);
	return NULL;
}

bool again_start(const struct again_order *orders, int count)
{
	struct places *places = calloc((size_t)count, sizeof(*places));

	if (!places || sem_init(&work.alone, 0, 0) != 0) {
		free(places);
		return false;
	}
	memcpy(work.orders, orders, (size_t)count * sizeof(*orders));
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

bool again_is_busy(void)
{
	return work.busy;
}

const struct again_order *again_end(int *count)
{
	pthread_join(work.thread, NULL);
	work.busy = false;
	*count = work.count;
	return work.orders;
}
