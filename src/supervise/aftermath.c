/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aftermath.c - how blind requests have fared
 *
 * A blind request's call is answered once its SYN is sent, and nothing of the supervisor's refers to the socket any more: a
 * program that closes it early is to be rid of it at once. But where SYNs lose their data now, in another network say, each
 * further blind request would fail by a reset, for as long as blindness is believed in. So the kernel is asked about the
 * connection by its addresses (sock_diag(7)), a little later, and later still while the SYN+ACK hasn't come:
 *
 *	the SYN's data was acknowledged    all is well
 *	it was not                         the next connection isn't blind, and finds out more
 *	no SYN+ACK in CONVERT_TIMEOUT      the converter has to prove itself again
 *	the connection isn't there         it may have been reset: GONE_MAX of these in a row are as one that has lost its data
 */
#include "config.h"

#include "supervise/aftermath.h"

#include "client/converters_facts.h"
#include "common/clock.h"
#include "supervise/connection.h"
#include "supervise/kernel.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <unistd.h>

#define EXPECTED_MAX 256 /* what doesn't fit isn't looked at: others tell as much */
#define GONE_MAX 4
#define FIRST_LOOK_NS (50 * CLOCK_NS_PER_MS)
#define ANSWER_MAX 8192

static struct expected {
	union sockaddr_ip local, remote;
	int converter;
	int64_t started, look_at; /* nanoseconds of CLOCK_MONOTONIC */
} expected[EXPECTED_MAX];
static int expected_count;
static int gone_in_a_row;

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

void aftermath_expect(int fd, int converter, const union sockaddr_ip *addr)
{
	struct expected *one = &expected[expected_count];
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	if (expected_count == EXPECTED_MAX || getsockname(fd, &local.sa, &len) != 0 ||
	    !sockaddr_ip_from(&one->local, &local.sa, len))
		return;
	one->remote = *addr;
	one->converter = converter;
	one->started = clock_ns();
	one->look_at = one->started + FIRST_LOOK_NS;
	expected_count++;
}

static void address_fill(__be32 out[4], const union sockaddr_ip *addr)
{
	const struct in6_addr in6 = sockaddr_ip_in6(addr);

	memset(out, 0, 4 * sizeof(out[0]));
	if (sockaddr_ip_is_v4(addr))
		memcpy(out, &in6.s6_addr[12], 4);
	else
		memcpy(out, &in6, sizeof(in6));
}

/* TCP_INFO out of an answer. Returns false if it says that there is no such connection. */
static bool answer_read(const struct nlmsghdr *header, ssize_t len, struct tcp_info *info)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	const struct rtattr *attribute = (const struct rtattr *)(message + 1);
	int left;

	if (!NLMSG_OK(header, (uint32_t)len) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));
	memset(info, 0, sizeof(*info));
	info->tcpi_state = message->idiag_state;
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == INET_DIAG_INFO)
			memcpy(info, RTA_DATA(attribute),
			       RTA_PAYLOAD(attribute) < sizeof(*info) ? RTA_PAYLOAD(attribute) : sizeof(*info));
	return true;
}

/* Asks the kernel about the connection. Returns 1 with @info set, 0 if there is none, -1 if the kernel doesn't say. */
static int ask(const struct expected *one, struct tcp_info *info)
{
	static int netlink = -1;
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	struct question question = {
		.header = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.request = {
			.sdiag_family = sockaddr_ip_is_v4(&one->remote) ? AF_INET : AF_INET6,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = ~0u,
			.id = {
				.idiag_sport = htons(sockaddr_ip_port(&one->local)),
				.idiag_dport = htons(sockaddr_ip_port(&one->remote)),
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
			},
		},
	};
	ssize_t got;

	if (netlink < 0)
		netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	address_fill(question.request.id.idiag_src, &one->local);
	address_fill(question.request.id.idiag_dst, &one->remote);
	if (netlink < 0 || send(netlink, &question, sizeof(question), 0) != sizeof(question))
		return -1;
	got = recv(netlink, answer, sizeof(answer), MSG_DONTWAIT);
	return got < 0 ? -1 : answer_read((const struct nlmsghdr *)answer, got, info);
}

static void note_lost(int converter)
{
	gone_in_a_row = 0;
	converters_note_syn_data(converter, false);
	converters_forget_silence(converter);
}

/* Looks at one. Returns whether it is to be looked at again. */
static bool look(struct expected *one, int64_t now)
{
	struct tcp_info info;
	const int found = ask(one, &info);

	if (found < 0)
		return false;
	if (found && info.tcpi_state == KERNEL_SYN_SENT) {
		one->look_at = now + (now - one->started);
		if (now - one->started < supervision.settings->timeout_ms * CLOCK_NS_PER_MS)
			return true;
		converters_doubt(one->converter);
	} else if (!found) {
		if (++gone_in_a_row >= GONE_MAX)
			note_lost(one->converter);
	} else if (info.tcpi_rtt && !(info.tcpi_options & TCPI_OPT_SYN_DATA)) {
		note_lost(one->converter);
	} else {
		gone_in_a_row = 0;
	}
	return false;
}

int64_t aftermath_look(int64_t now)
{
	int64_t earliest = 0;

	for (int i = 0; i < expected_count;) {
		if (expected[i].look_at <= now && !look(&expected[i], now)) {
			expected[i] = expected[--expected_count];
			continue;
		}
		if (!earliest || expected[i].look_at < earliest)
			earliest = expected[i].look_at;
		i++;
	}
	return earliest;
}
