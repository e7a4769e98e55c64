/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c - ask a converter, or go to the server itself: the socket that takes it, and what is sent
 *
 * attempt_choice.c says whom, and by which path. The request goes into the SYN by sendmsg(MSG_FASTOPEN), without cookie and without
 * any sysctl (TCP_FASTOPEN_NO_COOKIE), and early data behind it. Where the kernel or the converter doesn't take data in the SYN, or
 * takes a part of it, the rest is sent as soon as the handshake is over (attempt.want_output).
 *
 * A SYN that waits for early data is the kernel's own TCP_FASTOPEN_CONNECT: connect() returns
 * 0, and poll() and epoll say that the socket is writable, which the first bytes then make true.
 */
#include "config.h"

#include "shim/connect/attempt.h"

#include "convert/convert.h"
#include "common/clock.h"
#include "client/converters.h"
#include "client/converters_facts.h"
#include "client/exchange.h"
#include "host/networks.h"
#include "shim/wait/deadlines.h"
#include "shim/connect/attempt_private.h"
#include "shim/connect/liveness.h"
#include "shim/connect/path_begin.h"
#include "shim/connect/path_look.h"
#include "shim/connect/lowat.h"
#include "shim/system/next.h"
#include "shim/socket/tcpinfo.h"
#include "shim/connect/replace.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <string.h>

static const struct settings *settings;

void attempt_init(const struct settings *kept)
{
	settings = kept;
	attempt_choice_init(kept);
}

/*
 * connect(2) that doesn't block, whatever the mode of the socket: it has no flag for that, as sendmsg(2) has. The application's other
 * threads see the mode by gate_may_block(), which takes the moment of another one for what it is. The conn is claimed. Returns 0 or -errno.
 */
static int connect_nonblocking(struct conn *conn, int fd, const union sockaddr_ip *to)
{
	int flags = next.fcntl(fd, F_GETFL);
	bool lend = !(flags & O_NONBLOCK);
	int ret;

	if (lend) {
		atomic_fetch_add(&conn->lent, 1);
		next.fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	}
	ret = next.connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 ? 0 : -errno;
	if (lend) {
		next.fcntl(fd, F_SETFL, flags);
		atomic_fetch_add(&conn->lent, 1);
	}
	return ret;
}

void attempt_disconnect(int fd)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	next.connect(fd, &unspec, sizeof(unspec));
	sockopt_get(fd, SOL_SOCKET, SO_ERROR, 0); /* a reset of our own making is not news */
	/* Nor is what routers said of our SYN, which TCP queues even without IP_RECVERR (seen on Linux 6.18), and poll() tells of. */
	while (next.recv(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		;
}

struct handshake_ask attempt_ask_of(const struct conn *conn)
{
	return (struct handshake_ask){
		.cookie = converters_cookie(settings, conn->attempt.converter, conn->attempt.cookie_number),
		.mptcp = conn->attempt.ask_mptcp,
		.info = conn->attempt.ask_info,
		.silent = conn->attempt.ask_silent,
		.blind = conn->attempt.ask_blind,
		.over_mptcp = conn->socket.mptcp,
		.hold_ms = conn->attempt.hold_ms,
	};
}

int attempt_socket_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp)
{
	int domain = sockopt_get(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	bool v4 = sockaddr_ip_is_v4(to);
	struct in6_addr in6 = sockaddr_ip_in6(to);
	bool other = domain == AF_INET ? !v4 :
		     v4		       ? sockopt_get(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) :
					 conn->socket.was_mapped;
	int wanted = other ? AF_INET6 : domain;

	if ((other || mptcp != conn->socket.mptcp) &&
	    !(mptcp && replace_socket(conn, fd, wanted, IPPROTO_MPTCP)) &&
	    (other || conn->socket.mptcp) && !replace_socket(conn, fd, wanted, IPPROTO_TCP))
		return other ? -EAFNOSUPPORT : -ECONNABORTED;
	if (other) {
		conn->socket.shown_ipv4 |= domain == AF_INET;
		conn->socket.was_mapped = false;
		if (v4)
			sockopt_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	}
	conn->socket.was_mapped |= wanted == AF_INET6 && v4;
	sockaddr_ip_set(to, wanted, &in6, sockaddr_ip_port(to));
	return 0;
}

/* Request and early data, as far as they were not sent yet. */
struct message {
	uint8_t request[CONVERT_MESSAGE_MAX];
	uint16_t request_len;
	struct iovec iov[2];
	size_t len; /* bytes of both together that are to be sent */
};

static int message_init(struct message *message, const struct conn *conn)
{
	struct handshake_ask ask = attempt_ask_of(conn);
	size_t skip, all;
	ssize_t len = 0;

	if (conn_phase(conn) != CONN_EARLY_DIRECT)
		len = handshake_request(message->request, sizeof(message->request), &conn->call.peer,
					&ask);
	if (len < 0)
		return (int)len;
	message->request_len = (uint16_t)len;
	message->iov[0] = (struct iovec){ message->request, (size_t)len };
	message->iov[1] = (struct iovec){ conn->early.bytes, conn->early.len };
	all = (size_t)len + conn->early.len;
	skip = conn->attempt.message_sent < all ? conn->attempt.message_sent : all;
	message->len = all - skip;
	for (int i = 0; i < 2; i++) {
		size_t part = skip < message->iov[i].iov_len ? skip : message->iov[i].iov_len;

		message->iov[i].iov_len -= part;
		if (part)
			message->iov[i].iov_base = (uint8_t *)message->iov[i].iov_base + part;
		skip -= part;
	}
	return 0;
}

/* Sends what is left of request and early data. @to: the address for MSG_FASTOPEN, else NULL. Returns 0, or -errno with nothing sent. */
static int message_send(struct conn *conn, int fd, int flags, const union sockaddr_ip *to)
{
	union sockaddr_ip addr;
	struct message message;
	struct msghdr header = { .msg_iov = message.iov, .msg_iovlen = 2 };
	ssize_t sent;
	int ret = message_init(&message, conn);

	if (ret < 0)
		return ret;
	if (to) {
		addr = *to;
		header.msg_name = &addr;
		header.msg_namelen = sockaddr_ip_len(to);
	}
	sent = next.sendmsg(fd, &header, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
	ret = sent < 0 ? -errno : 0;
	conn->attempt.request_len = message.request_len;
	if (sent > 0)
		conn->attempt.message_sent = (uint16_t)(conn->attempt.message_sent + sent);
	conn->attempt.want_output = (size_t)(sent > 0 ? sent : 0) < message.len;
	return ret;
}

bool attempt_wants_syn_data(const struct conn *conn, int fd)
{
	const struct path_id path = path_of(conn);
	enum ride_syn_data may = ride_syn_data(conn->attempt.ride, conn->socket.mptcp, paths_take_syn_data(&path),
					       converters_corrects_windows(settings, conn->attempt.converter));

	return may == RIDE_SYN_DATA_ALWAYS ||
	       (may == RIDE_SYN_DATA_ON_ONE_PATH && !paths_may_be_several(fd, &conn->attempt.addr));
}

/* Notes for how long the SYN, which is to carry the request, may be withheld. */
static void hold_choose(struct conn *conn)
{
	const struct path_id path = path_of(conn);

	if (!conn->attempt.ask_info)
		conn->attempt.hold_ms = (uint16_t)exchange_hold_ms(settings, &path, conn->socket.mptcp, false);
}

/* Sends the SYN, with as much of the message as fits. Returns 0 or -errno. */
static int syn_send(struct conn *conn, int fd)
{
	const union sockaddr_ip *converter = &conn->attempt.addr;
	int ret;

	if (attempt_wants_syn_data(conn, fd) && sockopt_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)) {
		hold_choose(conn);
		ret = message_send(conn, fd, MSG_FASTOPEN, converter);
		conn->attempt.syn_data = conn->attempt.message_sent > 0;
		if (ret != -EOPNOTSUPP) /* sysctl tcp_fastopen without its bit 0x1 */
			return ret == -EINPROGRESS ? 0 : ret;
	}
	conn->attempt.want_output = true;
	ret = connect_nonblocking(conn, fd, converter);
	return ret == -EINPROGRESS ? 0 : ret;
}

/* An application's TCP_FASTOPEN_CONNECT must not hold back what is ours to send. */
static void fastopen_connect_off(struct conn *conn, int fd)
{
	if (conn->call.fastopen_connect)
		sockopt_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0);
	conn->call.fastopen_connect = false;
}

/* Resets the attempt, to ask the same converter anew: of the one before, only whom it asked, and how, is kept. */
static void attempt_renew(struct conn *conn)
{
	const struct attempt before = conn->attempt;

	conn->attempt = (struct attempt){
		.addr = before.addr,
		.converter = before.converter,
		.ride = before.ride,
		.ask_info = before.ask_info,
		.ask_mptcp = before.ask_mptcp,
		.ask_silent = before.ask_silent,
		.ask_blind = before.ask_blind,
		.cookie_asked = before.cookie_asked,
		.cookie_number = converters_cookie_current(before.converter),
	};
}

/* Resets the attempt, to try the server itself. */
static void attempt_at_server(struct conn *conn, const union sockaddr_ip *server)
{
	conn->attempt = (struct attempt){ .addr = *server };
}

/*
 * Notes why the SYN+ACK is waited for, now that the SYN is sent. On a Multipath TCP socket it says whether the connection has
 * Multipath TCP. If all of the message went with the SYN, to a converter that withholds such SYNs, the SYN+ACK may also say
 * that the server was reached. It says whether there is a response to a silent request; a request that stayed out of the SYN,
 * and isn't written yet, has one, and needn't say for how long a SYN may be withheld.
 */
static void synack_expect(struct conn *conn)
{
	conn->attempt.message_in_syn = conn->attempt.message_sent;
	conn->attempt.synack_due = conn->socket.mptcp;
	conn->attempt.ask_silent &= conn->attempt.syn_data;
	if (!conn->attempt.syn_data)
		conn->attempt.hold_ms = 0;
	conn->attempt.ask_blind &= conn->attempt.ask_silent;
	conn->attempt.silence_due = conn->attempt.ask_silent && conn->attempt.message_in_syn >= conn->attempt.request_len;
	conn->attempt.withheld_ms = (uint16_t)converters_withholds_ms(settings, conn->attempt.converter);
	conn->attempt.confirmable = conn->attempt.withheld_ms && !conn->attempt.ask_info && conn->attempt.syn_data &&
			    !conn->attempt.ask_silent && !conn->call.ringed &&
			    !conn->attempt.want_output && !conn->socket.streamed &&
			    (!conn->socket.mptcp || exchange_keeps_mptcp(settings, conn->attempt.converter));
	if (attempt_wants_output(&conn->attempt))
		watch_mask(conn);
}

static void deadline_start(struct conn *conn)
{
	liveness_begin(conn, settings->timeout_ms);
	if (conn->attempt.ask_blind) /* its silence is the server's, and lasts as long as a direct attempt would */
		deadlines_set(conn, 0);
}

int attempt_again(struct conn *conn, int fd)
{
	int ret;

	attempt_renew(conn);
	lowat_hold(conn, fd);
	fastopen_connect_off(conn, fd);
	watch_mask(conn); /* before anything can happen that the application would see */
	deadline_start(conn);
	ret = path_place(conn, fd);
	if (ret == 0)
		ret = syn_send(conn, fd);
	if (ret == 0) {
		synack_expect(conn);
		path_look_begin(conn);
	}
	return ret;
}

int attempt_hold(struct conn *conn, int fd)
{
	int ret;

	attempt_renew(conn);
	lowat_hold(conn, fd);
	if (!sockopt_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) ||
	    !sockopt_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1))
		return 1;
	conn->call.fastopen_connect = true;
	ret = path_place(conn, fd);
	if (ret == 0)
		ret = connect_nonblocking(conn, fd, &conn->attempt.addr);
	else
		return ret;
	if (ret != -EINPROGRESS)
		return ret;
	/* Fast Open is out of order for a while: the SYN is on its way, the request follows it. */
	conn->attempt.want_output = true;
	conn->attempt.ask_silent = false;
	watch_mask(conn);
	deadline_start(conn);
	return 1;
}

int attempt_send_held(struct conn *conn, int fd)
{
	int ret;

	watch_mask(conn);
	deadline_start(conn);
	hold_choose(conn);
	ret = message_send(conn, fd, 0, NULL);
	conn->attempt.syn_data = conn->attempt.message_sent > 0;
	synack_expect(conn);
	path_look_begin(conn);
	return ret == -EINPROGRESS || ret == -EAGAIN ? 0 : ret;
}

int attempt_send_rest(struct conn *conn, int fd)
{
	int ret = message_send(conn, fd, 0, NULL);

	if (ret < 0)
		return ret;
	if (conn->attempt.want_output)
		return -EAGAIN;
	if (!conn->attempt.syn_data && !conn->attempt.request_at && conn_phase(conn) != CONN_EARLY_DIRECT)
		path_look_behind(conn, fd);
	watch_mask(conn);
	return 0;
}

enum silence attempt_silence(const struct conn *conn, const struct tcp_info *info)
{
	if (!conn->attempt.silence_due)
		return SILENCE_NONE;
	if (info->tcpi_state == TCPINFO_UNKNOWN || info->tcpi_state == TCPINFO_SYN_SENT)
		return SILENCE_OPEN;
	/* One that is closed by now was accepted before if it has the facts, which are of the handshake. */
	return ride_is_silent(info->tcpi_options, true) ? SILENCE_KEPT : SILENCE_NONE;
}

void attempt_adopt(struct conn *conn)
{
	conn->attempt.ends = clock_ns_of(&conn->call.started) + settings->timeout_ms * CLOCK_NS_PER_MS;
	deadlines_set(conn, conn->attempt.ask_blind ? 0 : conn->attempt.ends);
}

int attempt_anew(struct conn *conn, int fd, enum ride ride)
{
	const int64_t ends = conn->attempt.ends;
	int ret;

	ret = attempt_socket_fit(conn, fd, &conn->attempt.addr, ride != RIDE_TCP);
	if (ret < 0)
		return ret;
	conn->attempt.ride = conn->socket.mptcp ? ride : RIDE_TCP;
	ret = attempt_again(conn, fd);
	liveness_go_on(conn, ends);
	path_look_begin(conn);
	watch_resume(conn);
	return ret;
}

int attempt_bypass(struct conn *conn, int fd)
{
	union sockaddr_ip server = conn->call.peer;
	int ret;

	attempt_at_server(conn, &server);
	ret = attempt_socket_fit(conn, fd, &server, replace_may_be_mptcp(conn));
	if (ret < 0)
		return ret;
	if (conn->socket.mptcp) {
		lowat_hold(conn, fd);
		fastopen_connect_off(conn, fd);
		conn->attempt.synack_due = true;
		watch_mask(conn);
		deadlines_set(conn, 0);
		ret = connect_nonblocking(conn, fd, &server);
		ret = ret == -EINPROGRESS ? 0 : ret;
	} else {
		ret = 1;
	}
	watch_resume(conn);
	return ret;
}

int attempt_directly(struct conn *conn, int fd)
{
	union sockaddr_ip server = conn->call.peer;
	int ret;

	ret = attempt_socket_fit(conn, fd, &server, false);
	if (ret < 0)
		return ret;

	attempt_at_server(conn, &server);
	/* Bytes may be kept of an application that was only told "writable", too. */
	conn->attempt.want_output = conn_has(conn, CONN_TOLD_CONNECTED) || conn->early.bytes;
	deadlines_set(conn, 0);
	fastopen_connect_off(conn, fd);
	sockopt_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0);
	ret = path_place_direct(conn, fd, &server);
	if (ret == 0)
		ret = connect_nonblocking(conn, fd, &server);
	watch_resume(conn);
	if (ret < 0 && ret != -EINPROGRESS)
		return ret;
	if (conn->attempt.want_output)
		watch_mask(conn);
	return 0;
}

void attempt_end(struct conn *conn, int fd)
{
	conn->hung_up = true; /* or soon will be: what event loops see of that is ours */
	liveness_end(conn, fd);
	path_look_end(conn);
	lowat_restore(conn, fd);
}
