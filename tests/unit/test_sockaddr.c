/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sockaddr.c - socket addresses of both families */
#include "config.h"

#include "common/sockaddr.h"

#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static union sockaddr_ip parsed(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 0) == 0, "%s", text);
	return addr;
}

/* @out NULL: not an address. Port 7 is the default. */
static const struct {
	const char *in, *out;
	int family;
} texts[] = {
	{ "192.0.2.1", "192.0.2.1:7", AF_INET },
	{ "192.0.2.1:80", "192.0.2.1:80", AF_INET },
	{ "192.0.2.1:65535", "192.0.2.1:65535", AF_INET },
	{ "192.0.2.1:0080", "192.0.2.1:80", AF_INET },
	{ "[192.0.2.1]:80", "192.0.2.1:80", AF_INET },
	{ "2001:db8::1", "[2001:db8::1]:7", AF_INET6 },
	{ "[2001:db8::1]", "[2001:db8::1]:7", AF_INET6 },
	{ "[2001:db8::1]:443", "[2001:db8::1]:443", AF_INET6 },
	{ "::", "[::]:7", AF_INET6 },
	{ "::ffff:192.0.2.1", "192.0.2.1:7", AF_INET6 },
	{ "[2001:db8:1111:2222:3333:4444:192.168.100.200]:65535",
	  "[2001:db8:1111:2222:3333:4444:c0a8:64c8]:65535", AF_INET6 },
	{ "", NULL, 0 },
	{ ":", NULL, 0 },
	{ ":80", NULL, 0 },
	{ "[", NULL, 0 },
	{ "[]", NULL, 0 },
	{ "[]:80", NULL, 0 },
	{ "[::1", NULL, 0 },
	{ "[::1]80", NULL, 0 },
	{ "[::1]:", NULL, 0 },
	{ "[::1]]", NULL, 0 },
	{ "[[::1]]:80", NULL, 0 },
	{ "::1]", NULL, 0 },
	{ "192.0.2.1:", NULL, 0 },
	{ "192.0.2.1:0", NULL, 0 },
	{ "192.0.2.1:65536", NULL, 0 },
	{ "192.0.2.1:99999999999999999999", NULL, 0 },
	{ "192.0.2.1:-1", NULL, 0 },
	{ "192.0.2.1:+1", NULL, 0 },
	{ "192.0.2.1: 1", NULL, 0 },
	{ "192.0.2.1:80 ", NULL, 0 },
	{ "192.0.2.1:http", NULL, 0 },
	{ "192.0.2", NULL, 0 },
	{ "192.0.2.256", NULL, 0 },
	{ " 192.0.2.1", NULL, 0 },
	{ "example.org", NULL, 0 },
	{ "example.org:80", NULL, 0 },
	{ "fe80::1%eth0", NULL, 0 },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc", NULL, 0 },
	{ "1:2:3:4:5:6:7:8:9", NULL, 0 },
};

START_TEST(parse_and_format)
{
	char buf[SOCKADDR_STRLEN];
	union sockaddr_ip addr;
	int ret;

	errno = E2BIG;
	ret = sockaddr_ip_parse(&addr, texts[_i].in, 7);
	ck_assert_int_eq(errno, E2BIG);
	ck_assert_msg(ret == (texts[_i].out ? 0 : -EINVAL), "\"%s\": %d", texts[_i].in, ret);
	if (!texts[_i].out)
		return;
	ck_assert_int_eq(addr.sa.sa_family, texts[_i].family);
	ck_assert_ptr_eq(sockaddr_ip_format(&addr, buf), buf);
	ck_assert_str_eq(buf, texts[_i].out);
}
END_TEST

START_TEST(from_ipv4)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	union sockaddr_ip addr, untouched;

	in.sin_addr.s_addr = htonl(0xc0000201);
	memset(in.sin_zero, 0xff, sizeof(in.sin_zero)); /* nobody clears it */
	ck_assert(sockaddr_ip_from(&addr, (struct sockaddr *)&in, sizeof(in)));
	ck_assert_uint_eq(sockaddr_ip_len(&addr), sizeof(in));
	ck_assert_uint_eq(sockaddr_ip_port(&addr), 80);
	ck_assert(sockaddr_ip_is_v4(&addr));
	memset(in.sin_zero, 0, sizeof(in.sin_zero));
	ck_assert_mem_eq(&addr.in, &in, sizeof(in));

	/* in a sockaddr_storage, as applications have them */
	ck_assert(sockaddr_ip_from(&addr, &addr.sa, sizeof(addr)));
	ck_assert_mem_eq(&addr.in, &in, sizeof(in));

	memset(&untouched, 0xa5, sizeof(untouched));
	addr = untouched;
	for (socklen_t len = 0; len < sizeof(in); len++)
		ck_assert(!sockaddr_ip_from(&addr, (struct sockaddr *)&in, len));
	ck_assert(!sockaddr_ip_from(&addr, NULL, sizeof(in)));
	ck_assert_mem_eq(&addr, &untouched, sizeof(addr));
}
END_TEST

START_TEST(from_ipv6)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(443),
				    .sin6_scope_id = 3, .sin6_flowinfo = htonl(5) };
	union sockaddr_ip addr;

	in6.sin6_addr.s6_addr[0] = 0xfe;
	in6.sin6_addr.s6_addr[1] = 0x80;
	in6.sin6_addr.s6_addr[15] = 1;
	ck_assert(sockaddr_ip_from(&addr, (struct sockaddr *)&in6, sizeof(in6)));
	ck_assert_mem_eq(&addr.in6, &in6, sizeof(in6));
	ck_assert_uint_eq(sockaddr_ip_len(&addr), sizeof(in6));
	ck_assert(!sockaddr_ip_is_v4(&addr));

	/* the old form, without a scope */
	ck_assert(sockaddr_ip_from(&addr, (struct sockaddr *)&in6, 24));
	ck_assert_uint_eq(addr.in6.sin6_scope_id, 0);
	ck_assert_mem_eq(&addr.in6, &in6, 24);
	for (socklen_t len = 0; len < 24; len++)
		ck_assert(!sockaddr_ip_from(&addr, (struct sockaddr *)&in6, len));
}
END_TEST

START_TEST(from_misaligned)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	char *buf = malloc(sizeof(in) + 1);
	union sockaddr_ip addr;

	ck_assert_ptr_nonnull(buf);
	memcpy(buf + 1, &in, sizeof(in));
	ck_assert(sockaddr_ip_from(&addr, (void *)(buf + 1), sizeof(in)));
	ck_assert_uint_eq(sockaddr_ip_port(&addr), 80);
	free(buf);
}
END_TEST

START_TEST(from_other_families)
{
	struct sockaddr_storage other = { .ss_family = AF_UNIX };
	union sockaddr_ip addr;

	ck_assert(!sockaddr_ip_from(&addr, (struct sockaddr *)&other, sizeof(other)));
	other.ss_family = AF_UNSPEC;
	ck_assert(!sockaddr_ip_from(&addr, (struct sockaddr *)&other, sizeof(other)));
}
END_TEST

START_TEST(set_follows_the_family)
{
	union sockaddr_ip v4 = parsed("192.0.2.1:80"), v6 = parsed("[2001:db8::1]:80"), out;
	struct in6_addr mapped = sockaddr_ip_in6(&v4), plain = sockaddr_ip_in6(&v6);

	ck_assert(IN6_IS_ADDR_V4MAPPED(&mapped));
	ck_assert(sockaddr_ip_set(&out, AF_INET, &mapped, 80));
	ck_assert_mem_eq(&out.in, &v4.in, sizeof(out.in));
	ck_assert(sockaddr_ip_set(&out, AF_UNSPEC, &mapped, 80));
	ck_assert_mem_eq(&out.in, &v4.in, sizeof(out.in));
	ck_assert(sockaddr_ip_set(&out, AF_INET6, &mapped, 80));
	ck_assert_int_eq(out.sa.sa_family, AF_INET6);
	ck_assert(sockaddr_ip_is_v4(&out));
	ck_assert(sockaddr_ip_equal(&out, &v4));
	ck_assert(sockaddr_ip_set(&out, AF_INET6, &plain, 80));
	ck_assert_mem_eq(&out.in6, &v6.in6, sizeof(out.in6));
	ck_assert(sockaddr_ip_set(&out, AF_UNSPEC, &plain, 80));
	ck_assert_int_eq(out.sa.sa_family, AF_INET6);
	ck_assert(!sockaddr_ip_set(&out, AF_INET, &plain, 80));
}
END_TEST

START_TEST(equality)
{
	union sockaddr_ip a = parsed("192.0.2.1:80"), b = parsed("[::ffff:192.0.2.1]:80");

	ck_assert(sockaddr_ip_equal(&a, &b));
	ck_assert(sockaddr_ip_equal(&b, &a));
	sockaddr_ip_set_port(&b, 81);
	ck_assert_uint_eq(sockaddr_ip_port(&b), 81);
	ck_assert(!sockaddr_ip_equal(&a, &b));
	sockaddr_ip_set_port(&a, 81);
	ck_assert(sockaddr_ip_equal(&a, &b));
	b = parsed("192.0.2.2:81");
	ck_assert(!sockaddr_ip_equal(&a, &b));
	b = parsed("[::192.0.2.1]:81");
	ck_assert(!sockaddr_ip_equal(&a, &b));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sockaddr");
	TCase *tcase = tcase_create("sockaddr");

	tcase_add_loop_test(tcase, parse_and_format, 0, (int)ARRAY_SIZE(texts));
	tcase_add_test(tcase, from_ipv4);
	tcase_add_test(tcase, from_ipv6);
	tcase_add_test(tcase, from_misaligned);
	tcase_add_test(tcase, from_other_families);
	tcase_add_test(tcase, set_follows_the_family);
	tcase_add_test(tcase, equality);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
