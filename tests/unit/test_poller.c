/* SPDX-License-Identifier: BSD-3-Clause */
/* test_poller.c - events of sockets: edges, owners that change, sockets that are gone while their events are on the way */
#include "daemon/poller.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS 300 /* more than there are slots at first */

struct owner {
	unsigned told;
	uint32_t events;
	int registration;
	struct owner *ends; /* whose socket it closes when it is told */
	int *fd;            /* of that one */
};

static struct event_base *base;
static struct poller *poller;
static int pairs[PAIRS][2]; /* [0] is registered */
static struct owner owners[PAIRS];

static void on_events(void *arg, uint32_t events)
{
	struct owner *owner = arg;

	owner->told++;
	owner->events |= events;
	if (!owner->ends)
		return;
	poller_forget(poller, owner->ends->registration);
	close(*owner->fd);
	owner->ends = NULL;
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void add(int i)
{
	owners[i].registration = poller_add(poller, pairs[i][0], on_events, &owners[i]);
	ck_assert_int_ge(owners[i].registration, 0);
}

/* Registers the first @count sockets, and takes the events that this raises. */
static void start(int count)
{
	base = event_base_new();
	poller = poller_create(base);
	ck_assert_ptr_nonnull(poller);
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		owners[i] = (struct owner){ 0 };
		add(i);
	}
	turn();
	for (int i = 0; i < count; i++) {
		ck_assert_uint_eq(owners[i].told, 1);
		ck_assert_uint_eq(owners[i].events, EPOLLOUT);
		owners[i].told = owners[i].events = 0;
	}
}

static void end(void)
{
	poller_destroy(poller);
	event_base_free(base);
}

static void put(int i)
{
	ck_assert_int_eq(write(pairs[i][1], "x", 1), 1);
}

START_TEST(one_edge_is_told_once)
{
	start(PAIRS);
	put(PAIRS - 1);
	turn();
	turn();
	ck_assert_uint_eq(owners[PAIRS - 1].told, 1);
	ck_assert_uint_eq(owners[PAIRS - 1].events, EPOLLIN | EPOLLOUT);
	ck_assert_uint_eq(owners[0].told, 0);
	put(PAIRS - 1);
	turn();
	ck_assert_uint_eq(owners[PAIRS - 1].told, 2);
	end();
}
END_TEST

/* The event of the second one was read with that of the first. */
START_TEST(gone_in_the_same_round)
{
	start(2);
	for (int i = 0; i < 2; i++) {
		owners[i].ends = &owners[!i];
		owners[i].fd = &pairs[!i][0];
		put(i);
	}
	turn();
	ck_assert_uint_eq(owners[0].told + owners[1].told, 1);
	turn();
	ck_assert_uint_eq(owners[0].told + owners[1].told, 1);
	end();
}
END_TEST

/* The socket is open elsewhere, so the kernel goes on to tell of it; its slot is another's by now. */
START_TEST(a_copy_is_open)
{
	struct owner next = { 0 };
	int copy, other[2];

	start(1);
	copy = dup(pairs[0][0]);
	poller_forget(poller, owners[0].registration);
	close(pairs[0][0]);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	next.registration = poller_add(poller, other[0], on_events, &next);
	ck_assert_int_eq(next.registration, owners[0].registration);
	put(0);
	turn();
	ck_assert_uint_eq(owners[0].told, 0);
	ck_assert_uint_eq(next.events, EPOLLOUT);
	close(copy);
	end();
}
END_TEST

START_TEST(another_owner)
{
	start(2);
	put(0);
	poller_hand_over(poller, owners[0].registration, on_events, &owners[1]);
	turn();
	ck_assert_uint_eq(owners[0].told, 0);
	ck_assert_uint_eq(owners[1].events, EPOLLIN | EPOLLOUT);
	end();
}
END_TEST

/* What was told to the first owner is told to the next one when the socket is registered again. */
START_TEST(removed_and_added)
{
	start(1);
	put(0);
	turn();
	poller_remove(poller, owners[0].registration, pairs[0][0]);
	poller_remove(poller, POLLER_NONE, pairs[0][0]);
	poller_forget(poller, POLLER_NONE);
	put(0);
	turn();
	ck_assert_uint_eq(owners[0].told, 1);
	add(0);
	turn();
	ck_assert_uint_eq(owners[0].told, 2);
	ck_assert_int_eq(poller_add(poller, pairs[0][0], on_events, NULL), -EEXIST);
	ck_assert_int_eq(poller_add(poller, -1, on_events, NULL), -EBADF);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("poller");
	TCase *tcase = tcase_create("poller");

	tcase_add_test(tcase, one_edge_is_told_once);
	tcase_add_test(tcase, gone_in_the_same_round);
	tcase_add_test(tcase, a_copy_is_open);
	tcase_add_test(tcase, another_owner);
	tcase_add_test(tcase, removed_and_added);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
