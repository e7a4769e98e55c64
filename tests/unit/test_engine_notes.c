/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_notes.c - what a dial notes for "convertize status" */
#include "config.h"

#include "client/converters.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>

START_TEST(connection_leaves_a_note)
{
	static const uint8_t early[8];
	union sockaddr_ip server;

	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	expect_on(dial_begin(false));
	kernel.now += 25 * MS;
	synack(TAKEN);
	answer(SILENCE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_uint_eq(kernel.note.cookie, 4711);
	ck_assert(sockaddr_ip_equal(&kernel.note.server, &server));
	ck_assert(sockaddr_ip_equal(&kernel.note.converter, converters_address(0)));
	ck_assert_uint_eq(kernel.note.connect_ms, 25);
	ck_assert_uint_eq(kernel.note.flags, NOTE_SYN_DATA);
	/* all at once: a silent request with early data, on a network that the user has named, after another one has refused */
	list_of(5);
	nets.elsewhere = nets.chosen = 0;
	settings.paths.count = 1;
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = true, .server = server, .early = early, .early_len = 8 };
	path_start_init(&dial.start, true, &in6addr_any);
	nets.list.paths[0].id.converter = 0;
	nets.list.addrs[0] = *converters_address(0);
	expect_on(dial_next(&dial, false, &end));
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_uint_eq(kernel.note.flags,
			  NOTE_SYN_DATA | NOTE_EARLY_DATA | NOTE_SILENT | NOTE_PLACED | NOTE_MOVED | NOTE_ORDERED);
	/* and nothing of it, though the user has named networks: the usual one was the only one */
	nets.elsewhere = nets.chosen = -1;
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_uint_eq(kernel.note.flags, 0);
}
END_TEST

/* Notes a connection as one that has reached its server. */
static unsigned int flags(void)
{
	dial_note(&dial);
	return kernel.note.flags;
}

START_TEST(note_tells_a_network_from_a_move_and_from_an_order)
{
	list_of(5);
	expect_on(dial_begin(false));
	ck_assert_int_eq(sockaddr_ip_parse(&dial.client, "198.51.100.7", 4321), 0);
	dial.start.placed = true; /* the usual network had failed before */
	ck_assert_uint_eq(flags(), NOTE_SYN_DATA | NOTE_PLACED);
	ck_assert(sockaddr_ip_equal(&kernel.note.client, &dial.client));
	settings.paths.count = 1;
	ck_assert_uint_eq(flags(), NOTE_SYN_DATA | NOTE_PLACED | NOTE_ORDERED);
	dial.start.placed = false; /* on the usual path to another converter */
	dial.start.moves = 1;
	ck_assert_uint_eq(flags(), NOTE_SYN_DATA | NOTE_MOVED);
}
END_TEST

START_TEST(direct_connection_leaves_no_note_without_a_reason_or_a_cookie)
{
	struct dial_ops cookieless = ops;

	expect_on(dial_begin(false));
	dial_note_direct(&dial);
	ck_assert_uint_eq(kernel.note.cookie, 0);
	dial_log_direct(&dial, false, "it would rather");
	ck_assert(is_logged("203.0.113.1:443: direct, it would rather after 0.0 ms\n"));
	cookieless.cookie = NULL;
	dial.ops = &cookieless;
	dial_note_direct(&dial);
	ck_assert_ptr_null(kernel.direct_reason);
	dial.ops = &ops;
	dial_note_direct(&dial);
	ck_assert_str_eq(kernel.direct_reason, "it would rather");
}
END_TEST

START_TEST(direct_connection_leaves_a_note_if_it_was_to_be_converted)
{
	nets.forbidden = true;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	dial_note_direct(&dial);
	ck_assert_ptr_null(kernel.direct_reason);
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
	dial_note_direct(&dial);
	ck_assert_uint_eq(kernel.note.cookie, 4711);
	ck_assert_str_eq(kernel.direct_reason, "CONVERT_PATHS or a quota allows no network that leads to a converter");
	/* a connection within this host is nobody's concern */
	kernel.direct_reason = NULL;
	end.verdict = POLICY_DIRECT_LOCAL;
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
	dial_note_direct(&dial);
	ck_assert_ptr_null(kernel.direct_reason);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine_notes");
	TCase *tcase = tcase_create("engine_notes");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, connection_leaves_a_note);
	tcase_add_test(tcase, note_tells_a_network_from_a_move_and_from_an_order);
	tcase_add_test(tcase, direct_connection_leaves_no_note_without_a_reason_or_a_cookie);
	tcase_add_test(tcase, direct_connection_leaves_a_note_if_it_was_to_be_converted);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
