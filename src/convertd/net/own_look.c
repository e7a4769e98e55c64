/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own_look.c - finds out whether the other end of a connection is on this very host
 *
 * The problem: a client may name an address that leads back to this host through a NAT in front of it, and so reach
 * services that are meant for the host alone.
 *
 * If a NAT has sent a connection of ours back to us, the kernel has both of its ends: ours from
 * A:p to P:x, with P the public address, and a service's at A:x. The NAT has changed the source to
 * P (one-to-one, as in clouds) or to the router's own address, and has kept the port p unless
 * it is taken. The kernel is asked for just these sockets (sock_diag(7), a lookup in its
 * table by addresses and ports, some 3 microseconds each). Where the NAT changes ports as well,
 * nothing is found here; session_place.c finds the worst of that.
 *
 * To be found falsely, a host at P has to connect from p to our port x while we connect from p to
 * P's port x: it only keeps us from connecting to itself.
 *
 * A server with a round trip above NEAR_US isn't this host, and isn't looked for. One that was not found is remembered
 * for KNOWN_SECONDS, in a table that all threads share.
 */
#include "config.h"

#include "convertd/net/own_look.h"

#include "convertd/base/clock.h"
#include "convertd/net/route.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In microseconds; the NAT in front of a host is nearer than that. */
#define NEAR_US 100000

/* The table of servers that are known not to be here; it works as that of plain_servers.c. */
#define PLACES 4096u
#define KNOWN_SECONDS 60
#define TIME_BITS 24
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

/* The NAT may also map the port to one of convertd's: so many of convertd's own listeners are looked at. */
#define LISTEN_LOOKS 4

/* In bytes; longer answers are cut, behind the part that is looked at. */
#define ANSWER_MAX 512

struct own_look {
	int fd;
	uint32_t sequence;
};

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

static _Atomic uint64_t elsewhere[PLACES];

struct own_look *own_look_create(void)
{
	static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct own_look *look = calloc(1, sizeof(*look));
	int error;

	if (!look)
		return NULL;
	look->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (look->fd >= 0 &&
	    connect(look->fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0)
		return look;
	error = errno;
	own_look_destroy(look);
	errno = error;
	return NULL;
}

void own_look_destroy(struct own_look *look)
{
	if (!look)
		return;
	if (look->fd >= 0)
		close(look->fd);
	free(look);
}

static uint64_t now_seconds(void)
{
	return (clock_now_ms() / 1000 + 1) & TIME_MASK;
}

static bool is_elsewhere(uint64_t key)
{
	uint64_t found = atomic_load_explicit(&elsewhere[key % PLACES], memory_order_relaxed);

	return found && found >> TIME_BITS == key >> TIME_BITS &&
	       ((now_seconds() - found) & TIME_MASK) < KNOWN_SECONDS;
}

static void put_address(__be32 out[4], const struct in6_addr *address, bool v4)
{
	memcpy(out, v4 ? &address->s6_addr[12] : &address->s6_addr[0], v4 ? 4 : 16);
}

/* Reads the kernel's answer. Returns the state of the socket that was asked for, or -1 if there is none. */
static int read_state(struct own_look *look)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;

	/* recv() doesn't wait: the kernel has answered within send(). */
	for (;;) {
		ssize_t n = recv(look->fd, answer, sizeof(answer), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)NLMSG_HDRLEN)
			return -1;
		/* The answer to an earlier question, whose recv() failed, is skipped. */
		if (header->nlmsg_seq != look->sequence)
			continue;
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    n < (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
			return -1;
		return ((const struct inet_diag_msg *)NLMSG_DATA(header))->idiag_state;
	}
}

/* Tells whether this host has a connection from @local's address and @port to @peer at @local's port. */
static bool has_socket(struct own_look *look, const union sockaddr_ip *local, uint16_t port,
		       const struct in6_addr *peer)
{
	struct in6_addr here = sockaddr_ip_in6(local);
	bool v4 = IN6_IS_ADDR_V4MAPPED(&here);
	struct question question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_seq = ++look->sequence },
		.body = { .sdiag_family = v4 ? AF_INET : AF_INET6,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = ~0U,
			  .id = { .idiag_sport = htons(port),
				  .idiag_dport = htons(sockaddr_ip_port(local)),
				  .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	int state;

	if (!!IN6_IS_ADDR_V4MAPPED(peer) != v4)
		return false;
	put_address(question.body.id.idiag_src, &here, v4);
	put_address(question.body.id.idiag_dst, peer, v4);
	if (send(look->fd, &question, sizeof(question), 0) < 0)
		return false;
	state = read_state(look);
	/* Without a connection the kernel answers with a listener, which doesn't count, and neither does an ended connection. */
	return state > 0 && state != TCP_LISTEN && state != TCP_CLOSE && state != TCP_TIME_WAIT;
}

/* Tells whether this host has the other end of our connection from @local, if the NAT has changed its source to @peer. */
static bool has_other_end(struct own_look *look, const struct listen_address *listen, size_t listen_count,
			  const union sockaddr_ip *local, uint16_t port, const struct in6_addr *peer)
{
	if (has_socket(look, local, port, peer))
		return true;
	for (size_t i = 0; i < listen_count && i < LISTEN_LOOKS; i++) {
		uint16_t own = sockaddr_ip_port(&listen[i].address);

		if (own != port && has_socket(look, local, own, peer))
			return true;
	}
	return false;
}

bool own_look_meets(struct own_look *look, const struct listen_address *listen, size_t listen_count,
		    struct route *route, int fd, const union sockaddr_ip *server, const struct tcp_info *info)
{
	uint64_t key = sockaddr_ip_hash(server);
	struct in6_addr address = sockaddr_ip_in6(server), router;
	uint16_t port = sockaddr_ip_port(server);
	union sockaddr_ip local;
	socklen_t len = sizeof(local);
	bool found;

	/* If the SYN was sent again, the round-trip time says nothing about the distance. */
	if (!look || (info->tcpi_rtt > NEAR_US && !info->tcpi_total_retrans) || is_elsewhere(key) ||
	    getsockname(fd, &local.sa, &len) < 0)
		return false;
	found = has_other_end(look, listen, listen_count, &local, port, &address) ||
		(route && route_gateway(route, &address, &router) &&
		 has_other_end(look, listen, listen_count, &local, port, &router));
	if (!found)
		atomic_store_explicit(&elsewhere[key % PLACES], (key & ~TIME_MASK) | now_seconds(),
				      memory_order_relaxed);
	return found;
}
