/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hold_table.c - SYNs that are withheld and released, and then found by their connections, or not */
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
#define NOW 2500 /* when a SYN comes: later than most releases */
#define MANY 1000

static struct hold_table *table;
static struct hold_syn *withheld[HOLD_SYNS_MAX + 1]; /* by client; NULL: it isn't */

static void release(unsigned client, uint64_t now_ms)
{
	hold_table_release(table, withheld[client], true, false, now_ms);
	withheld[client] = NULL;
}

static void setup(void)
{
	table = hold_table_create();
	ck_assert_ptr_nonnull(table);
}

static void teardown(void)
{
	struct hold_syn *held;

	for (unsigned i = 0; i <= HOLD_SYNS_MAX; i++)
		if (withheld[i])
			release(i, 0);
	while ((held = hold_table_expire(table, UINT64_MAX)))
		free(held);
	ck_assert_uint_eq(hold_table_count(table), 0);
	hold_table_destroy(table);
}

/* Those of client number @client. */
static struct syn_packet_flow addresses_of(unsigned client)
{
	struct syn_packet_flow flow;

	memset(&flow, 0, sizeof(flow));
	memcpy(flow.source.s6_addr + 12, &client, sizeof(client));
	flow.destination = in6addr_loopback;
	flow.source_port = (uint16_t)(client + 1);
	flow.destination_port = 1234;
	return flow;
}

static struct hold_flow flow_of(unsigned client, uint32_t isn)
{
	return (struct hold_flow){ addresses_of(client), isn };
}

static struct hold_syn *make_held(unsigned client, size_t packet_len)
{
	struct hold_syn *held = calloc(1, sizeof(*held));

	ck_assert_ptr_nonnull(held);
	held->flow = flow_of(client, ISN);
	held->packet_len = packet_len;
	held->native = NATIVE_NONE;
	return held;
}

static struct hold_syn *add_one(unsigned client, struct hold_syn *held)
{
	ck_assert_int_eq(hold_table_add(table, held), 0);
	withheld[client] = held;
	return held;
}

static struct hold_syn *add(unsigned client)
{
	return add_one(client, make_held(client, 100));
}

static void expect(unsigned client, uint32_t isn, enum hold_known known)
{
	struct hold_flow flow = flow_of(client, isn);
	uint8_t native;

	ck_assert_int_eq(hold_table_look(table, &flow, NOW, &native), known);
}

static struct hold_syn *take(unsigned client)
{
	struct syn_packet_flow addresses = addresses_of(client);

	return hold_table_take(table, &addresses);
}

START_TEST(life)
{
	struct hold_syn *held;

	expect(1, ISN, HOLD_NEW);
	held = add(1);
	expect(1, ISN, HOLD_IS_WITHHELD);
	expect(1, ISN + 1, HOLD_NEW); /* of the same addresses, but another connection */
	expect(2, ISN, HOLD_NEW);
	ck_assert_ptr_null(take(1)); /* not released yet */
	release(1, 1000);
	expect(1, ISN, HOLD_IS_RELEASED);
	ck_assert_ptr_null(take(2));
	ck_assert_ptr_eq(take(1), held);
	ck_assert_ptr_null(take(1));
	ck_assert_uint_eq(hold_table_count(table), 0);
	expect(1, ISN, HOLD_WAS_RELEASED); /* again, late */
	expect(1, ISN + 1, HOLD_NEW);
	hold_table_forget(table, &held->flow);
	expect(1, ISN, HOLD_NEW);
	free(held);
}
END_TEST

/* Addresses and ports of source and destination, and the sequence number: another value of any of them is another connection. */
START_TEST(whole_key)
{
	struct hold_flow flow = flow_of(1, ISN);
	uint8_t *bytes = (uint8_t *)&flow, native;

	add(1);
	for (size_t i = 0; i < sizeof(flow); i++) {
		bytes[i] ^= 1;
		ck_assert_int_eq(hold_table_look(table, &flow, NOW, &native), HOLD_NEW);
		bytes[i] ^= 1;
	}
	ck_assert_int_eq(hold_table_look(table, &flow, NOW, &native), HOLD_IS_WITHHELD);
}
END_TEST

static void expect_refused(unsigned client, uint32_t isn, uint8_t how)
{
	struct hold_flow flow = flow_of(client, isn);
	uint8_t native = NATIVE_NONE;

	ck_assert_int_eq(hold_table_look(table, &flow, NOW, &native), HOLD_WAS_REFUSED);
	ck_assert_uint_eq(native, how);
}

/* By its client's address and its number; while it is withheld, and for the worker that withholds it. */
START_TEST(found_by_its_attempt)
{
	int others[3], *const owner = &others[1];
	struct hold_syn *held = make_held(1, 100), *same = make_held(2, 100);
	struct hold_attempt attempt = { addresses_of(1).source, 77 };

	held->attempt = same->attempt = attempt;
	held->owner = same->owner = owner;
	add_one(1, held);
	add_one(2, same); /* one number, one SYN: this one isn't found */
	ck_assert_ptr_eq(hold_table_find(table, &attempt, owner), held);
	ck_assert_ptr_null(hold_table_find(table, &attempt, &others[0]));
	ck_assert_ptr_null(hold_table_find(table, &attempt, &others[2]));
	attempt.number++;
	ck_assert_ptr_null(hold_table_find(table, &attempt, owner));
	attempt.number--;
	attempt.client = addresses_of(2).source;
	ck_assert_ptr_null(hold_table_find(table, &attempt, owner));
	attempt.client = addresses_of(1).source;
	add(3); /* has no number */
	ck_assert_ptr_null(hold_table_find(table, &(struct hold_attempt){ .number = 0 }, NULL));
	release(1, 0);
	ck_assert_ptr_null(hold_table_find(table, &attempt, owner));
}
END_TEST

/* The table refuses a repeated SYN in the same way as the first one, whether that was withheld or not. */
START_TEST(refused_again)
{
	struct hold_flow flow = flow_of(2, ISN);
	struct hold_syn *held = add(1);

	held->native = 3;
	expect(1, ISN, HOLD_IS_WITHHELD);
	release(1, 1000);
	ck_assert_ptr_eq(take(1), held);
	free(held);
	expect_refused(1, ISN, 3);
	expect(1, ISN + 1, HOLD_NEW);
	hold_table_note(table, &flow, NATIVE_RESET);
	expect_refused(2, ISN, NATIVE_RESET);
	expect(2, ISN + 1, HOLD_NEW);
	hold_table_note(table, &flow, NATIVE_NONE);
	expect(2, ISN, HOLD_WAS_RELEASED);
	/* of the same number, but asked for anew */
	add(2);
	expect(2, ISN, HOLD_IS_WITHHELD);
}
END_TEST

START_TEST(expires)
{
	struct hold_syn *first = add(1), *second = add(2);

	add(3);
	release(2, 1000);
	release(1, 2000);
	ck_assert_ptr_null(hold_table_expire(table, 999));
	ck_assert_ptr_eq(hold_table_expire(table, 1000), second);
	ck_assert_ptr_null(hold_table_expire(table, 1999));
	ck_assert_ptr_eq(hold_table_expire(table, 2000), first);
	ck_assert_ptr_null(hold_table_expire(table, UINT64_MAX)); /* the third is withheld */
	ck_assert_uint_eq(hold_table_count(table), 1);
	free(first);
	free(second);
}
END_TEST

/* A client whose SYN+ACK was lost sends its SYN again. */
START_TEST(repeated_after_its_release)
{
	struct hold_syn *first = add(1), *second = add(2);

	release(2, 1000);
	release(1, 2000);
	expect(2, ISN, HOLD_IS_RELEASED);
	ck_assert_ptr_null(hold_table_expire(table, 1999));
	ck_assert_ptr_eq(hold_table_expire(table, 2000), first);
	ck_assert_ptr_null(hold_table_expire(table, NOW - 1));
	ck_assert_ptr_eq(hold_table_expire(table, NOW), second);
	free(first);
	free(second);
}
END_TEST

START_TEST(bounded_number)
{
	struct hold_syn *one_more = make_held(HOLD_SYNS_MAX, 0);

	for (unsigned i = 0; i < HOLD_SYNS_MAX; i++)
		add_one(i, make_held(i, 0));
	ck_assert_int_eq(hold_table_add(table, one_more), -ENOSPC);
	expect(HOLD_SYNS_MAX, ISN, HOLD_NEW);
	/* Released SYNs count until they are taken. */
	release(0, 0);
	ck_assert_int_eq(hold_table_add(table, one_more), -ENOSPC);
	free(take(0));
	add_one(HOLD_SYNS_MAX, one_more);
}
END_TEST

START_TEST(bounded_bytes)
{
	const size_t len = 65535, fit = HOLD_BYTES_MAX / len;
	struct hold_syn *one_more = make_held((unsigned)fit, len);

	for (unsigned i = 0; i < fit; i++)
		add_one(i, make_held(i, len));
	ck_assert_int_eq(hold_table_add(table, one_more), -ENOSPC);
	/* Packets are not counted any more when they are released. */
	release(0, 0);
	add_one((unsigned)fit, one_more);
	/* to the last byte */
	add_one((unsigned)fit + 1, make_held((unsigned)fit + 1, HOLD_BYTES_MAX - fit * len));
	one_more = make_held((unsigned)fit + 2, 1);
	ck_assert_int_eq(hold_table_add(table, one_more), -ENOSPC);
	free(one_more);
}
END_TEST

static void *take_all(void *arg)
{
	unsigned *taken = arg;

	for (unsigned i = 0; i < MANY; i++) {
		struct hold_syn *held;

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
	ck_assert_uint_eq(hold_table_count(table), 0);
}
END_TEST

/* A forged SYN, or an attempt that the client has given up: neither stands in the way of another one of the same addresses. */
START_TEST(another_sequence_number)
{
	struct hold_syn *forged = add(1), *mine = make_held(1, 100), *list;

	mine->flow.isn = ISN + 1;
	add_one(2, mine);
	expect(1, ISN, HOLD_IS_WITHHELD);
	expect(1, ISN + 1, HOLD_IS_WITHHELD);
	release(2, 1000);
	expect(1, ISN, HOLD_IS_WITHHELD);
	expect(1, ISN + 1, HOLD_IS_RELEASED);
	list = take(1);
	ck_assert_ptr_eq(list, mine);
	ck_assert_ptr_null(list->next);
	expect(1, ISN, HOLD_IS_WITHHELD);
	release(1, 2000);
	ck_assert_ptr_eq(take(1), forged);
	free(forged);
	free(mine);
}
END_TEST

/* The connection's sequence number isn't known: it gets all of its addresses, the latest first. */
START_TEST(all_of_the_addresses)
{
	struct hold_syn *first = add(1), *second = make_held(1, 100), *third = make_held(1, 100), *list;

	second->flow.isn = ISN + 1;
	third->flow.isn = ISN + 2;
	add_one(2, second);
	add_one(3, third);
	add(4);
	release(2, 2000);
	release(1, 1000);
	release(3, 3000);
	release(4, 4000);
	list = take(1);
	ck_assert_ptr_eq(list, third);
	ck_assert_ptr_eq(list->next, second);
	ck_assert_ptr_eq(list->next->next, first);
	ck_assert_ptr_null(first->next);
	ck_assert_uint_eq(hold_table_count(table), 1);
	ck_assert(!hold_table_take_back(table, first));
	free(first);
	free(second);
	free(third);
}
END_TEST

/* What isn't kept leaves the table with the release: no connection can take it, not even one of a forged SYN with the same addresses. */
START_TEST(not_kept)
{
	struct hold_syn *held = add(1);
	uint8_t native;

	hold_table_release(table, held, false, false, 1000);
	withheld[1] = NULL;
	ck_assert_uint_eq(hold_table_count(table), 0);
	ck_assert_ptr_null(take(1));
	ck_assert_ptr_null(hold_table_expire(table, UINT64_MAX));
	ck_assert(!hold_table_take_back(table, held));
	ck_assert_int_eq(hold_table_look(table, &held->flow, NOW, &native), HOLD_WAS_RELEASED);
	free(held);
}
END_TEST

/* Repetitions of a SYN that nobody has anything to say about are dropped as well. */
START_TEST(dropped_again)
{
	struct hold_syn *held = add(1);

	hold_table_release(table, held, true, true, 1000);
	withheld[1] = NULL;
	ck_assert(hold_table_take_back(table, held));
	ck_assert(!hold_table_take_back(table, held));
	ck_assert_ptr_null(take(1));
	free(held);
	expect(1, ISN, HOLD_WAS_DROPPED);
	expect(1, ISN + 1, HOLD_NEW);
	ck_assert_uint_eq(hold_table_count(table), 0);
}
END_TEST

START_TEST(withheld_syn_cannot_be_taken_back)
{
	struct hold_syn *held = add(1);

	ck_assert(!hold_table_take_back(table, held));
	expect(1, ISN, HOLD_IS_WITHHELD);
	ck_assert_uint_eq(hold_table_count(table), 1);
	release(1, 1000);
	ck_assert(hold_table_take_back(table, held));
	free(held);
}
END_TEST

/* Its memory may be another attempt's by then, without a number. */
START_TEST(taken_syn_can_be_withheld_again)
{
	struct hold_attempt attempt = { addresses_of(1).source, 77 };
	struct hold_syn *held = make_held(1, 100);

	for (int i = 0; i < 2; i++) {
		held->attempt = attempt;
		add_one(1, held);
		ck_assert(i || hold_table_find(table, &attempt, NULL) == held);
		expect(1, ISN, HOLD_IS_WITHHELD);
		release(1, 1000);
		ck_assert(hold_table_take_back(table, held));
		attempt.number = 0;
	}
	ck_assert_uint_eq(hold_table_count(table), 0);
	free(held);
}
END_TEST

START_TEST(table_that_was_never_made_can_be_destroyed)
{
	hold_table_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hold_table");
	TCase *tcase = tcase_create("table");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, life);
	tcase_add_test(tcase, whole_key);
	tcase_add_test(tcase, found_by_its_attempt);
	tcase_add_test(tcase, refused_again);
	tcase_add_test(tcase, expires);
	tcase_add_test(tcase, repeated_after_its_release);
	tcase_add_test(tcase, bounded_number);
	tcase_add_test(tcase, bounded_bytes);
	tcase_add_test(tcase, threads);
	tcase_add_test(tcase, another_sequence_number);
	tcase_add_test(tcase, all_of_the_addresses);
	tcase_add_test(tcase, not_kept);
	tcase_add_test(tcase, dropped_again);
	tcase_add_test(tcase, withheld_syn_cannot_be_taken_back);
	tcase_add_test(tcase, taken_syn_can_be_withheld_again);
	tcase_add_test(tcase, table_that_was_never_made_can_be_destroyed);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
