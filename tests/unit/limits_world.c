/* SPDX-License-Identifier: BSD-3-Clause */
/* limits_world.c - see limits_world.h */
#include "config.h"

#include "limits_world.h"

#include <check.h>
#include <string.h>

struct limits *limits;

void configure(const struct limits_settings *settings)
{
	if (!limits)
		limits = limits_create();
	ck_assert_ptr_nonnull(limits);
	limits_configure(limits, settings);
}

void finish(void)
{
	ck_assert_uint_eq(limits_members(limits), 0);
	ck_assert_uint_eq(limits_memory(limits), 0);
	limits_destroy(limits);
	limits = NULL;
}

void on_wake(struct limits_owner *owner)
{
	struct member *m = (struct member *)((char *)owner - offsetof(struct member, owner));

	m->woken = true;
}

void enter_address(struct member *m, const struct in6_addr *address, enum limits_class class)
{
	memset(m, 0, sizeof(*m));
	m->member.owner = &m->owner;
	m->owner.wake = on_wake;
	ck_assert_int_eq(limits_enter(limits, &m->member, address, class), 0);
}

void enter(struct member *m, const char *text)
{
	union sockaddr_ip addr;
	struct in6_addr address;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	address = sockaddr_ip_in6(&addr);
	enter_address(m, &address, LIMITS_PENDING);
}

void leave_at(struct member *m, uint64_t now_ms)
{
	limits_leave(limits, &m->member, now_ms);
}

void leave(struct member *m)
{
	leave_at(m, 1);
}

void move(struct member *m, enum limits_class class)
{
	limits_move(limits, &m->member, class);
}

enum outcome admit(struct member *m)
{
	return limits_admit(limits, &m->member);
}

int errors_at(struct member *m, uint64_t now_ms)
{
	int count = 0;

	while (count < 100000 && limits_take_error(limits, &m->member, now_ms))
		count++;
	return count;
}

struct in6_addr address_of(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, text, 1), 0);
	return sockaddr_ip_in6(&addr);
}

struct in6_addr spread(const char *base, unsigned bits, uint32_t i)
{
	struct in6_addr address = address_of(base);

	for (int bit = 0; bit < 32; bit++)
		if (i >> bit & 1)
			address.s6_addr[(bits - 1 - (unsigned)bit) / 8] |=
				(uint8_t)(1U << (7 - (bits - 1 - (unsigned)bit) % 8));
	return address;
}
