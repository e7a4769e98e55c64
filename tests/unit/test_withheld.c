/* SPDX-License-Identifier: BSD-3-Clause */
/* test_withheld.c - SYNs that are withheld and released, and then found by their connections, or not */
#include "run.h"

#include "hold/syn_packet.h"
#include "hold/hold_table.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ISN 12345
#define MANY 1000

static struct withheld_table *table;
static struct withheld_syn *withheld[WITHHELD_MAX + 1]; /* by client; NULL: it isn't */

static void release(unsigned client, uint64_t now_ms)
{
	withheld_release(table, withheld[client], now_ms);
	withheld[client] = NULL;
}

static void setup(void)
{
	table = withheld_create();
	ck_assert_ptr_nonnull(table);
}

static void teardown(void)
{
	struct withheld_syn *held;

	for (unsigned i = 0; i <= WITHHELD_MAX; i++)
		if (withheld[i])
			release(i, 0);
	while ((held = withheld_expire(table, UINT64_MAX))) {
		withheld_syn_fini(held);
		free(held);
	}
	ck_assert_uint_eq(withheld_count(table), 0);
	withheld_destroy(table);
}

/* That of client number @client. */
static struct syn_packet_flow flow_of(unsigned client)
{
	struct syn_packet_flow flow;

	memset(&flow, 0, sizeof(flow));
	memcpy(flow.source.s6_addr + 12, &client, sizeof(client));
	flow.destination = in6addr_loopback;
	flow.source_port = (uint16_t)(client + 1);
	flow.destination_port = 1234;
	return flow;
}

static struct withheld_syn *make_held(unsigned client, size_t packet_len)
{
	struct withheld_syn *held = calloc(1, sizeof(*held));

	ck_assert_ptr_nonnull(held);
	held->flow = flow_of(client);
	held->isn = ISN;
	held->packet_len = packet_len;
	held->fd = -1;
	held->native = NATIVE_NONE;
	return held;
}

static struct withheld_syn *add_one(unsigned client, struct withheld_syn *held)
{
	ck_assert_int_eq(withheld_add(table, held), 0);
	withheld[client] = held;
	return held;
}

static struct withheld_syn *add(unsigned client)
{
	return add_one(client, make_held(client, 100));
}

static void expect(unsigned client, uint32_t isn, enum withheld_known known)
{
	struct syn_packet_flow flow = flow_of(client);
	uint8_t native;

	ck_assert_int_eq(withheld_look(table, &flow, isn, &native), known);
}

static struct withheld_syn *take(unsigned client)
{
	struct syn_packet_flow flow = flow_of(client);

	return withheld_take(table, &flow);
}

START_TEST(life)
{
	struct withheld_syn *held;

	expect(1, ISN, WITHHELD_NEW);
	held = add(1);
	expect(1, ISN, WITHHELD_NOW);
	expect(1, ISN + 1, WITHHELD_NOW); /* another of the same addresses: the first one counts */
	expect(2, ISN, WITHHELD_NEW);
	ck_assert_ptr_null(take(1)); /* not released yet */
	release(1, 1000);
	expect(1, ISN, WITHHELD_BEFORE);
	ck_assert_ptr_null(take(2));
	ck_assert_ptr_eq(take(1), held);
	ck_assert_ptr_null(take(1));
	ck_assert_uint_eq(withheld_count(table), 0);
	expect(1, ISN, WITHHELD_BEFORE); /* again, late */
	expect(1, ISN + 1, WITHHELD_NEW);
	free(held);
}
END_TEST

/* Addresses and ports of source and destination: another value of any of them is another connection. */
START_TEST(whole_key)
{
	struct syn_packet_flow flow = flow_of(1);
	uint8_t *bytes = (uint8_t *)&flow, native;

	add(1);
	for (size_t i = 0; i < sizeof(flow); i++) {
		bytes[i] ^= 1;
		ck_assert_int_eq(withheld_look(table, &flow, ISN, &native), WITHHELD_NEW);
		bytes[i] ^= 1;
	}
	ck_assert_int_eq(withheld_look(table, &flow, ISN, &native), WITHHELD_NOW);
}
END_TEST

static void expect_refused(unsigned client, uint32_t isn, uint8_t how)
{
	struct syn_packet_flow flow = flow_of(client);
	uint8_t native = NATIVE_NONE;

	ck_assert_int_eq(withheld_look(table, &flow, isn, &native), WITHHELD_REFUSED);
	ck_assert_uint_eq(native, how);
}

/* Whoever sends a SYN again that was refused is refused in the same way, whether it was withheld or not. */
/* By its client's address and its number; while it is withheld, and for the worker that withholds it. */
START_TEST(found_by_its_attempt)
{
	struct limits_owner owner = { 0 }, other = { 0 };
	struct withheld_syn *held = make_held(1, 100), *same = make_held(2, 100);
	struct withheld_attempt attempt = { flow_of(1).source, 77 };

	held->attempt = same->attempt = attempt;
	held->member.owner = same->member.owner = &owner;
	add_one(1, held);
	add_one(2, same); /* one number, one SYN: this one isn't found */
	ck_assert_ptr_eq(withheld_find(table, &attempt, &owner), held);
	ck_assert_ptr_null(withheld_find(table, &attempt, &other));
	attempt.number++;
	ck_assert_ptr_null(withheld_find(table, &attempt, &owner));
	attempt.number--;
	attempt.client = flow_of(2).source;
	ck_assert_ptr_null(withheld_find(table, &attempt, &owner));
	attempt.client = flow_of(1).source;
	release(1, 0);
	ck_assert_ptr_null(withheld_find(table, &attempt, &owner));
}
END_TEST

START_TEST(refused_again)
{
	struct syn_packet_flow flow = flow_of(2);
	struct withheld_syn *held = add(1);

	held->native = 3;
	expect(1, ISN, WITHHELD_NOW);
	release(1, 1000);
	ck_assert_ptr_eq(take(1), held);
	free(held);
	expect_refused(1, ISN, 3);
	expect(1, ISN + 1, WITHHELD_NEW);
	withheld_note_refusal(table, &flow, ISN, NATIVE_RESET);
	expect_refused(2, ISN, NATIVE_RESET);
	expect(2, ISN + 1, WITHHELD_NEW);
	/* of the same number, but asked for anew */
	add(2);
	expect(2, ISN, WITHHELD_NOW);
}
END_TEST

START_TEST(expires)
{
	struct withheld_syn *first = add(1), *second = add(2);

	add(3);
	release(2, 1000);
	release(1, 2000);
	ck_assert_ptr_null(withheld_expire(table, 999));
	ck_assert_ptr_eq(withheld_expire(table, 1000), second);
	ck_assert_ptr_null(withheld_expire(table, 1999));
	ck_assert_ptr_eq(withheld_expire(table, 2000), first);
	ck_assert_ptr_null(withheld_expire(table, UINT64_MAX)); /* the third is withheld */
	ck_assert_uint_eq(withheld_count(table), 1);
	free(first);
	free(second);
}
END_TEST

START_TEST(bounded_number)
{
	struct withheld_syn *one_more = make_held(WITHHELD_MAX, 0);

	for (unsigned i = 0; i < WITHHELD_MAX; i++)
		add_one(i, make_held(i, 0));
	ck_assert_int_eq(withheld_add(table, one_more), -ENOSPC);
	expect(WITHHELD_MAX, ISN, WITHHELD_NEW);
	/* Released SYNs count until they are taken. */
	release(0, 0);
	ck_assert_int_eq(withheld_add(table, one_more), -ENOSPC);
	free(take(0));
	add_one(WITHHELD_MAX, one_more);
}
END_TEST

START_TEST(bounded_bytes)
{
	const size_t len = 65535, fit = WITHHELD_BYTES_MAX / len;
	struct withheld_syn *one_more = make_held((unsigned)fit, len);

	for (unsigned i = 0; i < fit; i++)
		add_one(i, make_held(i, len));
	ck_assert_int_eq(withheld_add(table, one_more), -ENOSPC);
	/* Packets are not counted any more when they are released. */
	release(0, 0);
	add_one((unsigned)fit, one_more);
}
END_TEST

static void *take_all(void *arg)
{
	unsigned *taken = arg;

	for (unsigned i = 0; i < MANY; i++) {
		struct withheld_syn *held;

		while (!(held = take(i)))
			;
		free(held);
		(*taken)++;
	}
	return NULL;
}

/* One thread withholds, others accept. */
START_TEST(threads)
{
	unsigned taken = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, take_all, &taken), 0);
	for (unsigned i = 0; i < MANY; i++) {
		add(i);
		release(i, 0);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(taken, MANY);
	ck_assert_uint_eq(withheld_count(table), 0);
}
END_TEST

/* What is dropped takes its socket with it. */
START_TEST(a_dropped_syn_closes_its_socket)
{
	struct withheld_syn held = { .fd = socket(AF_INET, SOCK_STREAM, 0) };
	int fd = held.fd;

	ck_assert_int_ge(fd, 0);
	withheld_syn_fini(&held);
	ck_assert_int_eq(close(fd), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("withheld_table");
	TCase *tcase = tcase_create("table");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, life);
	tcase_add_test(tcase, whole_key);
	tcase_add_test(tcase, found_by_its_attempt);
	tcase_add_test(tcase, refused_again);
	tcase_add_test(tcase, expires);
	tcase_add_test(tcase, bounded_number);
	tcase_add_test(tcase, bounded_bytes);
	tcase_add_test(tcase, threads);
	tcase_add_test(tcase, a_dropped_syn_closes_its_socket);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
