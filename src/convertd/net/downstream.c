/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * downstream.c - opens the connection to the server, and reads why it failed or which options were negotiated
 *
 * We tell the client why a server can't be reached (RFC 8803 6.2.8), so that it can give its application the errno of
 * a direct connection. We find the reason as follows:
 *
 * - An RST shows as ECONNREFUSED: Connection Reset.
 * - We pass on an ICMP Destination Unreachable with its Code, which errno has lost (a dozen codes become
 *   EHOSTUNREACH). IP_RECVERR keeps the message in the socket's error queue. We switch the option off once connected,
 *   because it also makes Linux end an established connection for errors that TCP should survive (RFC 1122 4.2.3.9).
 *   An MPTCP socket refuses the option (Linux 6.18): there, and for errors from our own routing table, the code is
 *   the usual one of that errno.
 * - Linux gives up in SYN_SENT at the first ICMP unreachable, soft or hard; the client's own connection would have
 *   done the same.
 * - All other errors are this host's: a lack of descriptors, ports or memory is Resource Exceeded; a time-out or a
 *   routing loop is Network Failure. Their value 0 stands for the RFC's delay of 30 s.
 *
 * Likewise the kernel doesn't keep the options of the SYN+ACK: TCP_SAVED_SYN is for accepted sockets only. We rebuild
 * them from TCP_INFO: the kinds are exact, and so are the window scale and whether the server took Multipath TCP. The
 * MSS is the lesser of the server's and that of our path. Values that the kernel doesn't tell are written as zero:
 * both timestamps. MP_CAPABLE has the version and the HMAC flag alone, without the server's key, which is a secret of
 * our connection.
 */
#include "config.h"

#include "convertd/net/downstream.h"

#include "common/tcp.h"
#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/warden_message.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Bytes that timestamps take from each segment (RFC 7323 Appendix A). */
#define TIMESTAMPS_SPACE 12

/* RFC 8684 3.1: subtype MP_CAPABLE and version 1; flag H, HMAC-SHA256. */
#define MP_CAPABLE_V1 0x01
#define MP_CAPABLE_FLAG_H 0x01

static const int on = 1, off = 0;

static void set_recverr(int fd, const union sockaddr_ip *server, const int *value)
{
	if (server->sa.sa_family == AF_INET)
		setsockopt(fd, SOL_IP, IP_RECVERR, value, sizeof(*value));
	else
		setsockopt(fd, SOL_IPV6, IPV6_RECVERR, value, sizeof(*value));
}

void downstream_repeat_syns(int fd, int retries)
{
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
}

/* Sends the SYN. Returns 0 or -errno. */
static int send_syn(int fd, const union sockaddr_ip *server)
{
	return connect(fd, &server->sa, sockaddr_ip_len(server)) < 0 && errno != EINPROGRESS ? -errno : 0;
}

/* Connects from the address @source. Returns as downstream_connect(). */
static int connect_from(const struct downstream_plan *plan, const union sockaddr_ip *source)
{
	int fd = socket(plan->server->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			plan->mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);
	int error;

	if (fd < 0)
		return -errno;
	/* The kernel hands out the lowest free number. */
	if (plan->last_fd && fd == plan->last_fd) {
		close(fd);
		return -EMFILE;
	}
	set_recverr(fd, plan->server, &on);
	/* The relay does it for plain TCP. */
	if (plan->mptcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!plan->proven)
		downstream_repeat_syns(fd, 1); /* the fewest repetitions that TCP_SYNCNT takes */
	/* The name was tried when the settings were read. An error is ignored: the connection is slower at most. */
	if (*plan->congestion)
		congestion_set(fd, plan->congestion);
	/* MPTCP sockets lack the option: they send the third ACK as a segment of its own. */
	if (plan->data_follows)
		setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
	error = source_bind(fd, source, plan->choice, plan->route);
	if (!error)
		error = send_syn(fd, plan->server);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

/*
 * Tells whether this host has a source address towards the server. connect() fails with EADDRNOTAVAIL both without an
 * address (IPv6 is switched off) and without a free port.
 */
static bool has_source(const struct downstream_plan *plan)
{
	struct in6_addr address = sockaddr_ip_in6(plan->server);

	return !plan->route || route_has_source(plan->route, &address);
}

int downstream_connect(const struct downstream_plan *plan)
{
	union sockaddr_ip source = plan->source;
	int fd = connect_from(plan, &source);

	/* The client's port is in use towards this very server, so we take another one. */
	if (fd == -EADDRNOTAVAIL && plan->choice == SOURCES_CLIENT) {
		sockaddr_ip_set_port(&source, 0);
		fd = connect_from(plan, &source);
	}
	if (fd == -EADDRNOTAVAIL && plan->choice == SOURCES_ANY && !has_source(plan))
		return -ENETUNREACH;
	return fd;
}

/* Returns the error of a connection that isn't established, as -errno, or 0. Reading it clears it. */
static int socket_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

int downstream_result(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);
	int error;

	memset(info, 0, sizeof(*info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0)
		return -errno;
	if (info->tcpi_state != TCP_SYN_SENT && info->tcpi_state != TCP_CLOSE)
		return 0;
	/*
	 * The kernel measured a round trip: the socket was connected, and reset before we looked. The error stays for
	 * the next read.
	 */
	if (info->tcpi_state == TCP_CLOSE && info->tcpi_rtt)
		return 0;
	error = socket_error(fd);
	if (error)
		return error;
	/* An MPTCP socket may close without having kept the reason. */
	return info->tcpi_state == TCP_SYN_SENT ? -EINPROGRESS : -ECONNREFUSED;
}

void downstream_established(int fd, const union sockaddr_ip *server)
{
	set_recverr(fd, server, &off);
}

/* Tells whether the error came from this host: its kernel has found no neighbour, and names its own address as the sender. */
static bool is_said_here(int fd, const struct sock_extended_err *error, size_t len)
{
	union sockaddr_ip offender = { 0 }, local = { 0 };
	socklen_t local_len = sizeof(local);
	struct in6_addr a, b;

	/* The address of the sender stands behind the error, ip(7). */
	if (len < sizeof(*error) + sizeof(offender.in) || getsockname(fd, &local.sa, &local_len) < 0)
		return false;
	len -= sizeof(*error);
	memcpy(&offender, error + 1, len < sizeof(offender) ? len : sizeof(offender));
	if (offender.sa.sa_family != AF_INET &&
	    (offender.sa.sa_family != AF_INET6 || len < sizeof(offender.in6)))
		return false;
	a = sockaddr_ip_in6(&offender);
	b = sockaddr_ip_in6(&local);
	return IN6_ARE_ADDR_EQUAL(&a, &b);
}

/* Sets @refusal by an ICMP message in the socket's error queue. Returns false if there is none. */
static bool icmp_error(int fd, struct downstream_error *refusal)
{
	char control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct sock_extended_err error;

	if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		bool v4 = c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR;
		bool v6 = c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR;

		if (!v4 && !v6)
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof(error));
		refusal->said_here = is_said_here(fd, (const struct sock_extended_err *)CMSG_DATA(c),
						  c->cmsg_len - CMSG_LEN(0));
		if (error.ee_origin != (v4 ? SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6))
			continue;
		if (error.ee_type == (v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH)) {
			refusal->code = CONVERT_ERROR_DESTINATION_UNREACHABLE;
			refusal->value = error.ee_code;
		} else {
			/* Time Exceeded and the like: the client would take its Code for one of Destination Unreachable. */
			refusal->code = CONVERT_ERROR_NETWORK_FAILURE;
			refusal->value = 0;
		}
		return true;
	}
	return false;
}

/* The Error TLV for an errno without an ICMP message, and its value: the ICMP code for each family. */
static const struct {
	int error;
	enum convert_error_code code;
	uint8_t v4, v6;
} refusals[] = {
	{ ECONNREFUSED, CONVERT_ERROR_CONNECTION_RESET, 0, 0 },
	{ ECONNRESET, CONVERT_ERROR_CONNECTION_RESET, 0, 0 },
	{ ENETUNREACH, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_NET_UNREACH,
	  ICMP6_DST_UNREACH_NOROUTE },
	{ EAFNOSUPPORT, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_NET_UNREACH,
	  ICMP6_DST_UNREACH_NOROUTE },
	{ EHOSTUNREACH, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_HOST_UNREACH,
	  ICMP6_DST_UNREACH_ADDR },
	{ EHOSTDOWN, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_HOST_UNREACH,
	  ICMP6_DST_UNREACH_ADDR },
	{ ENOPROTOOPT, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_PROT_UNREACH,
	  ICMP6_DST_UNREACH_NOROUTE },
	/* A prohibit route: of this host, or (by ICMPv6, on an MPTCP socket) of a router on the way. */
	{ EACCES, CONVERT_ERROR_DESTINATION_UNREACHABLE, ICMP_PKT_FILTERED,
	  ICMP6_DST_UNREACH_ADMIN },
	/* A packet filter of this host. */
	{ EPERM, CONVERT_ERROR_NOT_AUTHORIZED, 0, 0 },
	{ EMFILE, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	{ ENFILE, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	{ ENOBUFS, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	{ ENOMEM, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	/* No local port is left, or the source address has gone. */
	{ EADDRNOTAVAIL, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	{ EAGAIN, CONVERT_ERROR_RESOURCE_EXCEEDED, 0, 0 },
	{ ETIMEDOUT, CONVERT_ERROR_NETWORK_FAILURE, 0, 0 },
};

struct downstream_error downstream_refusal(int fd, const union sockaddr_ip *server, int error)
{
	struct downstream_error refusal = { .code = CONVERT_ERROR_NETWORK_FAILURE };

	if (fd >= 0 && icmp_error(fd, &refusal))
		return refusal;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (refusals[i].error != -error)
			continue;
		refusal.code = refusals[i].code;
		refusal.value = sockaddr_ip_is_v4(server) ? refusals[i].v4 : refusals[i].v6;
		break;
	}
	return refusal;
}

/* Writes a TCP option of @value_len bytes to @out. Returns its length with kind and length. */
static size_t put_option(uint8_t *out, uint8_t kind, const uint8_t *value, uint8_t value_len)
{
	out[0] = kind;
	out[1] = (uint8_t)(2 + value_len);
	if (value_len)
		memcpy(out + 2, value, value_len);
	return out[1];
}

/* Writes an MSS option with the size of segments that we send, timestamps included as in the MSS option of a SYN. Returns its length. */
static size_t put_mss(uint8_t *out, const struct tcp_info *info)
{
	uint32_t mss = info->tcpi_snd_mss;
	uint8_t value[2];

	if (!mss)
		return 0;
	if (info->tcpi_options & TCPI_OPT_TIMESTAMPS)
		mss += TIMESTAMPS_SPACE;
	if (mss > UINT16_MAX)
		mss = UINT16_MAX;
	value[0] = (uint8_t)(mss >> 8);
	value[1] = (uint8_t)mss;
	return put_option(out, TCP_KIND_MSS, value, sizeof(value));
}

size_t downstream_options(int fd, const struct tcp_info *info, bool mptcp,
			  uint8_t out[static DOWNSTREAM_OPTIONS_MAX])
{
	static const uint8_t zeros[8];
	static const uint8_t mp_capable[2] = { MP_CAPABLE_V1, MP_CAPABLE_FLAG_H };
	size_t n = put_mss(out, info);

	if (info->tcpi_options & TCPI_OPT_SACK)
		n += put_option(out + n, TCP_KIND_SACK_PERMITTED, NULL, 0);
	if (info->tcpi_options & TCPI_OPT_TIMESTAMPS)
		n += put_option(out + n, TCP_KIND_TIMESTAMPS, zeros, sizeof(zeros));
	if (info->tcpi_options & TCPI_OPT_WSCALE) {
		uint8_t scale = info->tcpi_snd_wscale;

		n += put_option(out + n, TCP_KIND_WINDOW_SCALE, &scale, 1);
	}
	if (mptcp && multipath_is_spoken(fd))
		n += put_option(out + n, TCP_KIND_MPTCP, mp_capable, sizeof(mp_capable));
	return n;
}

/*
 * ----- remembers servers that didn't take Multipath TCP, so that they aren't asked each time -----
 *
 * The problem: a connection that asks for Multipath TCP in vain falls back to TCP, and Linux may lose bytes on it
 * (fallback.c). To repeat it as plain TCP would cost the server another connection, and some servers take only one.
 *
 * The table is indexed by a hash of the server's address and port; a new entry replaces the old one in its place. A
 * place is one atomic word of key and time, so that all threads use it without a lock. The upper 40 bits of the hash tell
 * servers apart; if two are mistaken for each other, the connection is made by plain TCP, which always works.
 */

#define PLACES 4096u
#define REMEMBERED_SECONDS 600 /* not for ever, as a server may be upgraded to Multipath TCP */

#define TIME_BITS 24 /* for seconds, which wrap around after 194 days */
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

static _Atomic uint64_t places[PLACES];

/* Returns the time in seconds, as it is stored. */
static uint64_t now_seconds(void)
{
	return (clock_now_ms() / 1000 + 1) & TIME_MASK;
}

bool plain_servers_has(const union sockaddr_ip *server)
{
	uint64_t key = sockaddr_ip_hash(server), found = atomic_load(&places[key % PLACES]);

	return found && found >> TIME_BITS == key >> TIME_BITS &&
	       ((now_seconds() - found) & TIME_MASK) < REMEMBERED_SECONDS;
}

void plain_servers_note(const union sockaddr_ip *server)
{
	uint64_t key = sockaddr_ip_hash(server);

	atomic_store(&places[key % PLACES], (key & ~TIME_MASK) | now_seconds());
}
