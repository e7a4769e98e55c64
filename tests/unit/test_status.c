/* SPDX-License-Identifier: BSD-3-Clause */
/* test_status.c - sockets, notes and networks become connections, sums, rates, and lines of 80 columns */
#include "config.h"

#include "convertize/status/status.h"

#include "common/clock.h"
#include "run.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 80

static struct status_socket sockets[16], earlier[16];
static struct status_note notes[16];
static struct status_owner owners[16];
static struct host_link links[] = { { .index = 1 }, { .index = 2 } };
static struct host_address addresses[2];
static struct host host = { .links = links, .link_count = 2, .addresses = addresses, .address_count = 2 };
static union sockaddr_ip converter;
static struct status_parts parts;
static struct status_sockets before;
static struct status_view view;

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip out;

	ck_assert_int_eq(sockaddr_ip_parse(&out, text, 0), 0);
	return out;
}

static void setup(void)
{
	parts = (struct status_parts){ .all = true, .user = 1000, .sockets.list = sockets, .notes.list = notes, .owners = owners,
				      .host = &host, .sockets.read = 3 * CLOCK_NS_PER_S };
	before = (struct status_sockets){ .list = earlier, .read = CLOCK_NS_PER_S };
	strcpy(links[0].name, "wlan0");
	strcpy(links[1].name, "wwan0");
	addresses[0] = (struct host_address){ .index = 1, .address = address("192.0.2.7") };
	addresses[1] = (struct host_address){ .index = 2, .address = address("198.51.100.9") };
}

static void teardown(void)
{
	status_view_fini(&view);
}

static struct status_socket *add(uint64_t cookie, uint32_t inode, const char *local, uint64_t received)
{
	struct status_socket *out = &sockets[parts.sockets.count++];

	*out = (struct status_socket){ .cookie = cookie, .inode = inode, .uid = 1000, .mptcp = !local, .local = address(local ? local : "0.0.0.0"),
				       .peer = address("203.0.113.1:1234"), .received = received };
	return out;
}

static struct note *note(uint64_t cookie, uid_t owner, unsigned int flags, int64_t noted)
{
	struct status_note *out = &notes[parts.notes.count++];

	*out = (struct status_note){ { .cookie = cookie, .server = address("203.0.113.80:443"), .flags = flags, .noted = noted }, owner };
	return &out->note;
}

static void join(bool with_rates)
{
	ck_assert(status_join(&view, &parts, with_rates ? &before : NULL));
}

/* A Multipath TCP connection with two subflows, one of them new since the last look. */
START_TEST(test_flows_and_rates)
{
	add(1, 10, NULL, 0);
	add(2, 10, "192.0.2.7", 5000);
	add(3, 10, "198.51.100.9", 300);
	note(1, 1000, 0, 5);
	earlier[0] = sockets[1];
	earlier[0].received = 1000;
	before.count = 1;
	join(true);
	ck_assert_uint_eq(view.count, 1);
	ck_assert_uint_eq(view.converted, 1);
	ck_assert_int_eq(view.interval_ms, 2000);
	ck_assert_uint_eq(view.list[0].flow_count, 2);
	ck_assert_str_eq(view.list[0].flows[0].device, "wlan0");
	ck_assert_uint_eq(view.list[0].flows[0].received, 5000);
	ck_assert_uint_eq(view.list[0].flows[0].received_rate, 2000);
	ck_assert_uint_eq(view.list[0].flows[1].received_rate, 150);
	ck_assert_uint_eq(view.sum_count, 2);
}
END_TEST

/* A connection has outlived the network on which it began if only others carry it. */
START_TEST(test_outlived)
{
	add(1, 10, NULL, 0)->local = address("192.0.2.7");
	add(2, 10, "198.51.100.9", 300)->established = true;
	add(3, 10, "192.0.2.7", 5000)->established = true;
	add(4, 11, NULL, 0)->local = address("192.0.2.7"); /* nothing carries it */
	note(1, 1000, 0, 5);
	note(4, 1000, 0, 6);
	join(false);
	ck_assert_uint_eq(view.outlived, 0);
	status_view_fini(&view);
	sockets[2].established = false; /* given up */
	join(false);
	ck_assert_uint_eq(view.outlived, 1);
	ck_assert(view.list[0].outlived);
	ck_assert(!view.list[1].outlived);
}
END_TEST

/* Two subflows over one network are one flow; a direct connection isn't in the sums; an address that has gone is named so. */
START_TEST(test_sums)
{
	add(1, 10, NULL, 0);
	add(2, 10, "192.0.2.7", 1000);
	add(3, 10, "192.0.2.7", 100);
	add(4, 11, "192.0.2.7", 10);
	add(5, 12, "192.0.2.7", 1);
	add(6, 13, "192.0.2.99", 7);
	note(1, 1000, 0, 5);
	note(4, 1000, 0, 4);
	note(5, 1000, NOTE_DIRECT, 3);
	note(6, 1000, 0, 6);
	join(false);
	ck_assert_uint_eq(view.count, 4);
	ck_assert_uint_eq(view.converted, 3);
	ck_assert_uint_eq(view.list[0].socket->cookie, 4); /* the oldest */
	ck_assert(view.list[3].direct);
	ck_assert_uint_eq(view.list[1].flows[0].subflows, 2);
	ck_assert_uint_eq(view.sum_count, 2);
	ck_assert_str_eq(view.sums[0].device, "gone");
	ck_assert_uint_eq(view.sums[1].received, 1110);
	ck_assert_uint_eq(view.sums[1].received_rate, 0);
}
END_TEST

/* A user sees their own; another user's note says nothing about one's sockets; without a note the converter tells. */
START_TEST(test_whose)
{
	add(1, 10, "192.0.2.7", 1);
	add(2, 11, "192.0.2.7", 1)->uid = 1001;
	add(3, 12, "192.0.2.7", 1)->peer = address("203.0.113.2:1234");
	note(1, 1001, NOTE_DIRECT, 5);
	note(2, 1001, 0, 5);
	parts.all = false;
	join(false);
	ck_assert_uint_eq(view.count, 0);
	status_view_fini(&view);
	converter = address("203.0.113.1:1234");
	parts.converters = &converter;
	parts.converter_count = 1;
	join(false);
	ck_assert_uint_eq(view.count, 1);
	ck_assert_ptr_null(view.list[0].note);
	status_view_fini(&view);
	parts.all = true;
	note(1, 0, 0, 6);
	join(false);
	ck_assert_uint_eq(view.count, 2);
	ck_assert_ptr_nonnull(view.list[0].note);
}
END_TEST

/* A gateway's connection is its client's: a program of this host, if one has such a socket, or another host's. */
START_TEST(test_clients)
{
	add(1, 10, "192.0.2.7", 0)->uid = 0;
	add(2, 20, "192.0.2.7", 0)->uid = 0;
	add(3, 30, "192.0.2.7:4000", 0)->peer = address("203.0.113.80:443");
	add(4, 40, "192.0.2.7:4000", 0)->peer = address("203.0.113.81:443");
	owners[0] = (struct status_owner){ 30, 300, "curl" };
	parts.owner_count = 1;
	note(1, 0, 0, 5)->client = address("192.0.2.7:4000");
	note(2, 0, 0, 6)->client = address("192.168.1.20:4000");
	join(false);
	ck_assert_uint_eq(view.count, 2);
	ck_assert_ptr_eq(view.list[0].client, &sockets[2]);
	ck_assert_ptr_eq(view.list[0].client_owner, &owners[0]);
	ck_assert_ptr_null(view.list[1].client);
	ck_assert_ptr_null(view.list[1].client_owner);
}
END_TEST

/* The busiest connections come first when asked for, then the oldest, and at last those that go directly. */
START_TEST(test_order)
{
	static const uint64_t wanted[] = { 3, 4, 1, 2, 5 };

	for (uint64_t i = 1; i <= 5; i++) {
		add(i, (uint32_t)i, "192.0.2.7", i == 3 ? 9000 : i == 4 || i == 5 ? 4000 : 0);
		note(i, 1000, i == 5 ? NOTE_DIRECT : 0, (int64_t)i);
		earlier[i - 1] = (struct status_socket){ .cookie = i };
	}
	before.count = 5;
	join(true);
	for (size_t i = 0; i < 5; i++)
		ck_assert_uint_eq(view.list[i].socket->cookie, i + 1);
	status_view_order(&view);
	for (size_t i = 0; i < 5; i++)
		ck_assert_uint_eq(view.list[i].socket->cookie, wanted[i]);
}
END_TEST

/* With the longest of all names and addresses no line is too long, no byte is a command to the terminal, and the sums come first or last. */
START_TEST(test_lines)
{
	static const unsigned int kinds[] = { 0, NOTE_MOVED | NOTE_EARLY_DATA | NOTE_SILENT | NOTE_SYN_DATA, NOTE_PLACED, NOTE_PLACED | NOTE_ORDERED,
					      NOTE_DIRECT };
	static const char sums[] = "All open converted connections", controls[] = "\x1b\xc2\x9b\xc2\x80";
	static const struct status_style styles[] = { { 60, false, false }, { WIDTH, false, true }, { 200, false, false } };
	const char long_address[] = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535";

	strcpy(links[0].name, "a-long-device-1");
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct note *one;

		add(i + 1, i + 1, "192.0.2.7", UINT64_MAX / 7)->peer = address(long_address);
		one = note(i + 1, 1000, kinds[i], i);
		one->server = one->client = address(long_address);
		memset(one->reason, 'r', sizeof(one->reason) - 1);
		owners[i] = (struct status_owner){ .inode = i + 1, .pid = 4194304 };
		for (size_t at = 0; at < sizeof(owners[i].program) - 1; at++)
			owners[i].program[at] = controls[at % (sizeof(controls) - 1)];
	}
	parts.owner_count = sizeof(kinds) / sizeof(kinds[0]);
	join(true);
	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
		char *text = NULL, *rest, *line, *found;
		size_t size, lines = 0;
		FILE *stream = open_memstream(&text, &size);

		status_print(stream, &view, &styles[i]);
		ck_assert_int_eq(fclose(stream), 0);
		ck_assert_ptr_null(strchr(text, '\x1b'));
		ck_assert_ptr_null(strchr(text, '\x9b'));
		ck_assert_ptr_null(strchr(text, '\x80'));
		found = strstr(text, sums);
		ck_assert_ptr_nonnull(found);
		ck_assert_int_eq(found < strstr(text, "????"), styles[i].sums_first);
		rest = text;
		while ((line = strsep(&rest, "\n"))) {
			ck_assert_msg(strlen(line) <= styles[i].width || strstr(line, "????") == line, "%s", line);
			lines++;
		}
		ck_assert_uint_gt(lines, 15);
		free(text);
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("status");
	Suite *suite = suite_create("status");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_flows_and_rates);
	tcase_add_test(tcase, test_outlived);
	tcase_add_test(tcase, test_sums);
	tcase_add_test(tcase, test_whose);
	tcase_add_test(tcase, test_clients);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_lines);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
