/* SPDX-License-Identifier: BSD-3-Clause */
/* test_warden.c - which messages the main process accepts, and which calls it permits */
#include "config.h"

#include "daemon/warden_message.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/process/warden.h"
#include "convertd/process/systemd.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(notices)
{
	ck_assert(notify_message_is_right("READY=1"));
	ck_assert(notify_message_is_right("READY=1\nSTATUS=Not reloaded: \"x\""));
	ck_assert(notify_message_is_right("FDSTORE=1\nFDPOLL=0\nFDNAME=convertd-rules"));
	ck_assert(notify_message_is_right("STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000\n"));
	ck_assert(!notify_message_is_right(""));
	ck_assert(!notify_message_is_right("\n"));
	ck_assert(!notify_message_is_right("READY=12"));
	ck_assert(!notify_message_is_right("READY=1\n\nSTATUS=x"));
	ck_assert(!notify_message_is_right("STATUS=x\nMAINPID=1"));
	ck_assert(!notify_message_is_right("FDSTORE=1\nFDNAME=another"));
	ck_assert(!notify_message_is_right("FDNAME=convertd-rulesx"));
}
END_TEST

static struct listen_address place(const char *text, const char *device)
{
	struct listen_address where;

	memset(&where, 0, sizeof(where));
	ck_assert_int_eq(sockaddr_ip_parse(&where.address, text, 0), 0);
	strcpy(where.device, device);
	return where;
}

static struct warden_call make_call(enum warden_call_kind kind, const char *text)
{
	struct warden_call call;

	memset(&call, 0, sizeof(call));
	call.kind = kind;
	if (text) {
		call.listen[0] = place(text, "");
		call.count = 1;
	}
	return call;
}

#define FORM_IS_RIGHT(call, passed) warden_call_is_right(&(call), sizeof(call), passed)

START_TEST(forms)
{
	struct warden_call call = make_call(WARDEN_CALL_RULES, "[::]:1234");

	ck_assert(FORM_IS_RIGHT(call, false));
	ck_assert(!FORM_IS_RIGHT(call, true));
	ck_assert(!warden_call_is_right(&call, sizeof(call) - 1, false));
	ck_assert(!warden_call_is_right(&call, 0, false));
	call.count = 0;
	ck_assert(!FORM_IS_RIGHT(call, false));
	call.count = LISTEN_ADDRESSES_MAX + 1;
	ck_assert(!FORM_IS_RIGHT(call, false));
	call.count = 2; /* of which the second has no family */
	ck_assert(!FORM_IS_RIGHT(call, false));
	call.count = 1;
	call.queues = 2;
	ck_assert(!FORM_IS_RIGHT(call, false));
	call.queues = 1;
	memset(call.listen[0].device, 'x', sizeof(call.listen[0].device));
	ck_assert(!FORM_IS_RIGHT(call, false));

	call = make_call(WARDEN_CALL_QUEUES, NULL);
	call.count = SETTINGS_WORKERS_MAX;
	ck_assert(FORM_IS_RIGHT(call, false));
	call.count++;
	ck_assert(!FORM_IS_RIGHT(call, false));
	call = make_call(WARDEN_CALL_QUEUE, NULL);
	call.index = SETTINGS_WORKERS_MAX;
	ck_assert(!FORM_IS_RIGHT(call, false));

	call = make_call(WARDEN_CALL_BIND, "192.0.2.1:80");
	ck_assert(FORM_IS_RIGHT(call, true));
	ck_assert(!FORM_IS_RIGHT(call, false));
	call = make_call(WARDEN_CALL_CONGESTION, NULL);
	ck_assert(!FORM_IS_RIGHT(call, true));
	memset(call.congestion, 'x', sizeof(call.congestion));
	ck_assert(!FORM_IS_RIGHT(call, true));
	strcpy(call.congestion, "bbr");
	ck_assert(FORM_IS_RIGHT(call, true));
	call = make_call(WARDEN_CALL_NOTICE, NULL);
	strcpy(call.text, "READY=1");
	ck_assert(FORM_IS_RIGHT(call, false));
	ck_assert(FORM_IS_RIGHT(call, true));
	memset(call.text, 'x', sizeof(call.text));
	ck_assert(!FORM_IS_RIGHT(call, false));
	call = make_call(WARDEN_CALL_LEAVE, NULL);
	ck_assert(FORM_IS_RIGHT(call, false));
	ck_assert(!FORM_IS_RIGHT(call, true));
	call = make_call(WARDEN_CALL_KIND_COUNT, NULL);
	ck_assert(!FORM_IS_RIGHT(call, false));
}
END_TEST

static struct warden_policy policy;

static void make_policy(void)
{
	static struct convertd_settings settings;
	const struct listen_address unit = place("[2001:db8::1]:443", "");

	settings.listen[0] = place("[::]:1234", "");
	settings.listen[1] = place("192.0.2.1:80", "eth0");
	settings.listen_count = 2;
	settings.metrics[0].address = place("127.0.0.1:99", "").address;
	settings.metrics_count = 1;
	strcpy(settings.congestion_server, "bbr");
	settings.hold_syn = SETTINGS_HOLD_AUTO;
	warden_grant_init(&policy.in_force, &settings, &unit, 1);
	memset(&policy.latest, 0, sizeof(policy.latest));
}

static bool allows(enum warden_call_kind kind, const char *text)
{
	struct warden_call call = make_call(kind, text);

	ck_assert(FORM_IS_RIGHT(call, kind == WARDEN_CALL_BIND || kind == WARDEN_CALL_TRANSPARENT));
	return warden_policy_allows(&policy, &call);
}

START_TEST(permissions)
{
	struct warden_call call = make_call(WARDEN_CALL_CONGESTION, NULL);

	ck_assert(allows(WARDEN_CALL_RULES, "[::]:1234"));
	ck_assert(allows(WARDEN_CALL_RULES, "[2001:db8::1]:443"));
	ck_assert(!allows(WARDEN_CALL_RULES, "[::]:22"));
	ck_assert(!allows(WARDEN_CALL_RULES, "0.0.0.0:1234"));
	/* With another device. */
	ck_assert(!allows(WARDEN_CALL_RULES, "192.0.2.1:80"));
	ck_assert(allows(WARDEN_CALL_BIND, "192.0.2.1:80"));
	ck_assert(allows(WARDEN_CALL_BIND, "127.0.0.1:99"));
	ck_assert(!allows(WARDEN_CALL_BIND, "127.0.0.1:22"));
	ck_assert(!allows(WARDEN_CALL_TRANSPARENT, NULL));
	strcpy(call.congestion, "bbr");
	ck_assert(warden_policy_allows(&policy, &call));
	strcpy(call.congestion, "cubic");
	ck_assert(!warden_policy_allows(&policy, &call));
	/* What only the settings read last need, too. */
	policy.latest.transparent = true;
	ck_assert(allows(WARDEN_CALL_TRANSPARENT, NULL));
}
END_TEST

/* During a reload: the places of the settings in force and of those read last in one call, and no others. */
START_TEST(rules_of_both_settings)
{
	struct warden_call call = make_call(WARDEN_CALL_RULES, "[::]:1234");

	call.listen[1] = place("192.0.2.2:80", "");
	call.count = 2;
	call.queues = 1;
	ck_assert(FORM_IS_RIGHT(call, false));
	ck_assert(!warden_policy_allows(&policy, &call));
	policy.latest.listen[0] = call.listen[1];
	policy.latest.listen_count = 1;
	ck_assert(warden_policy_allows(&policy, &call));
	call.listen[2] = place("[::]:22", "");
	call.count = 3;
	ck_assert(!warden_policy_allows(&policy, &call));
}
END_TEST

START_TEST(no_queues_where_none_are_needed)
{
	struct warden_call call = make_call(WARDEN_CALL_RULES, "[::]:1234");

	policy.in_force.withhold = false;
	ck_assert(warden_policy_allows(&policy, &call));
	call.queues = 1;
	ck_assert(!warden_policy_allows(&policy, &call));
	call = make_call(WARDEN_CALL_QUEUES, NULL);
	ck_assert(warden_policy_allows(&policy, &call));
	call.count = 1;
	ck_assert(!warden_policy_allows(&policy, &call));
}
END_TEST

static bool lets_go(const char *destination)
{
	union sockaddr_ip address = place(destination, "").address;
	struct in6_addr in6 = sockaddr_ip_in6(&address);

	return warden_policy_allows_syn(&policy, &in6, sockaddr_ip_port(&address));
}

START_TEST(syns)
{
	ck_assert(lets_go("[2001:db8::9]:1234"));
	ck_assert(lets_go("198.51.100.7:1234"));
	ck_assert(lets_go("192.0.2.1:80"));
	ck_assert(!lets_go("192.0.2.2:80"));
	ck_assert(lets_go("[2001:db8::1]:443"));
	ck_assert(!lets_go("[2001:db8::2]:443"));
	ck_assert(!lets_go("198.51.100.7:22"));
	policy.in_force.listen[0] = place("0.0.0.0:1234", "");
	ck_assert(lets_go("198.51.100.7:1234"));
	ck_assert(!lets_go("[2001:db8::9]:1234"));
}
END_TEST

START_TEST(verdicts)
{
	struct warden_verdict in[2] = { { .id = 7, .len = 3, .accept = 1 }, { .id = 8 } }, out;
	uint8_t message[sizeof(in) + 3];
	const uint8_t *packet;
	size_t at = 0;

	memcpy(message, &in[0], sizeof(in[0]));
	memcpy(message + sizeof(in[0]), "abc", 3);
	memcpy(message + sizeof(in[0]) + 3, &in[1], sizeof(in[1]));
	ck_assert(warden_verdict_next(message, sizeof(message), &at, &out, &packet));
	ck_assert(out.id == 7 && out.len == 3 && memcmp(packet, "abc", 3) == 0);
	ck_assert(warden_verdict_next(message, sizeof(message), &at, &out, &packet));
	ck_assert(out.id == 8 && !out.accept && !packet);
	ck_assert(!warden_verdict_next(message, sizeof(message), &at, &out, &packet));
	ck_assert_uint_eq(at, sizeof(message));
	/* Every truncation: none that isn't whole. */
	for (size_t len = 0; len < sizeof(in[0]) + 3; len++) {
		at = 0;
		ck_assert(!warden_verdict_next(message, len, &at, &out, &packet));
		ck_assert_uint_eq(at, 0);
	}
	/* One of a dropped packet has no bytes of it. */
	in[0].accept = 0;
	memcpy(message, &in[0], sizeof(in[0]));
	ck_assert(!warden_verdict_next(message, sizeof(message), &at, &out, &packet));
}
END_TEST

static size_t count_open(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Unexpected descriptors are closed, and a message that is too long is refused. */
START_TEST(descriptors)
{
	int pair[2], passed, twice[2] = { 0, 1 };
	char control[CMSG_SPACE(sizeof(twice))] = { 0 }, text[8], sent[] = "12";
	struct iovec bytes = { .iov_base = sent, .iov_len = 2 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	size_t open;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	open = count_open();
	ck_assert_int_eq(fdpass_receive(pair[1], text, sizeof(text), false, &passed), -EAGAIN);
	ck_assert_int_eq(fdpass_send(pair[0], "x", 1, 0), 1);
	ck_assert_int_eq(fdpass_receive(pair[1], text, sizeof(text), false, &passed), 1);
	ck_assert_int_ge(passed, 0);
	close(passed);
	ck_assert_int_eq(fdpass_send(pair[0], "123456789", 9, 0), 9);
	ck_assert_int_eq(fdpass_receive(pair[1], text, sizeof(text), false, &passed), -EMSGSIZE);
	ck_assert_int_eq(passed, -1);
	*header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				    .cmsg_type = SCM_RIGHTS,
				    .cmsg_len = CMSG_LEN(sizeof(twice)) };
	memcpy(CMSG_DATA(header), twice, sizeof(twice));
	ck_assert_int_eq(sendmsg(pair[0], &message, 0), 2);
	ck_assert_int_eq(fdpass_receive(pair[1], text, sizeof(text), false, &passed), -EMSGSIZE);
	ck_assert_int_eq(passed, -1);
	ck_assert_uint_eq(count_open(), open);
	close(pair[0]);
	ck_assert_int_eq(fdpass_receive(pair[1], text, sizeof(text), true, &passed), 0);
	close(pair[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("warden");
	TCase *messages = tcase_create("messages"), *permits = tcase_create("permissions");

	tcase_add_test(messages, notices);
	tcase_add_test(messages, forms);
	tcase_add_test(messages, verdicts);
	tcase_add_test(messages, descriptors);
	tcase_add_checked_fixture(permits, make_policy, NULL);
	tcase_add_test(permits, permissions);
	tcase_add_test(permits, rules_of_both_settings);
	tcase_add_test(permits, no_queues_where_none_are_needed);
	tcase_add_test(permits, syns);
	suite_add_tcase(suite, messages);
	suite_add_tcase(suite, permits);
	return test_run(suite);
}
