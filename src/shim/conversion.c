/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conversion.c - from connect() to the end of the Convert response, on one socket
 *
 * The request goes into the SYN by sendto(MSG_FASTOPEN), without cookie and without
 * any sysctl (TCP_FASTOPEN_NO_COOKIE). Where the kernel or the converter doesn't
 * take data in the SYN, or takes a part of it, the rest is sent as soon as the
 * handshake is over (conn.want_output).
 *
 * The response is peeked at until it is complete and then taken off the stream in one
 * call, so that nothing of it is ever kept here. While a part is missing,
 * SO_RCVLOWAT makes the socket readable only when the rest has come.
 *
 * An end that the server caused is the application's: the socket is disconnected,
 * which sends the reset that Section 6.2.8 wants, and looks to poll and epoll like
 * one whose connection was refused. If the converter can't be reached or doesn't
 * speak Convert, the same socket is connected to the server directly, unless the
 * application has already sent data, and the converter is left alone for a while.
 */
#include "config.h"

#include "shim/conversion.h"

#include "client/handshake.h"
#include "client/policy.h"
#include "convert/convert.h"
#include "shim/converters.h"
#include "shim/log.h"
#include "shim/next.h"
#include "shim/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <string.h>

#define TCPI_STATE_CLOSE 7        /* TCP_CLOSE, which the headers of tcp_info don't define */
#define CONVERTER_REST_SECONDS 30 /* Section 6.2.8: the default delay */

static const struct settings *settings;

void conversion_init(const struct settings *kept)
{
	settings = kept;
	converters_init(kept);
}

bool conversion_enabled(void)
{
	return settings && settings->enabled;
}

static int option_int(int fd, int level, int name, int fallback)
{
	socklen_t len = sizeof(int);
	int value;

	return next.getsockopt(fd, level, name, &value, &len) == 0 ? value : fallback;
}

static void log_verdict(const struct conn *conn, const char *verdict, const char *detail)
{
	char server[SOCKADDR_STRLEN];
	struct timespec now;
	double ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (double)(now.tv_sec - conn->started.tv_sec) * 1e3 +
	     (double)(now.tv_nsec - conn->started.tv_nsec) / 1e6;
	log_line("%s: %s%s after %.1f ms", sockaddr_ip_format(&conn->peer, server), verdict, detail,
		 ms);
}

static int go_directly(const union sockaddr_ip *server, const char *reason)
{
	char text[SOCKADDR_STRLEN];

	log_line("%s: direct: %s", sockaddr_ip_format(server, text), reason);
	return CONVERSION_DIRECT;
}

/* The policy is to convert, and it can't be done. */
static int go_without_converter(const union sockaddr_ip *server, int error, const char *reason)
{
	char text[SOCKADDR_STRLEN];

	if (!settings->fail_closed)
		return go_directly(server, reason);
	log_line("%s: failed: %s, and CONVERT_FALLBACK is none", sockaddr_ip_format(server, text),
		 reason);
	return -error;
}

/* connect(2) that doesn't block, whatever the mode of the descriptor. Returns 0 or -errno. */
static int connect_nonblocking(int fd, const union sockaddr_ip *to)
{
	int flags = next.fcntl(fd, F_GETFL);
	int ret;

	if (!(flags & O_NONBLOCK))
		next.fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	ret = next.connect(fd, &to->sa, sockaddr_ip_len(to)) == 0 ? 0 : -errno;
	if (!(flags & O_NONBLOCK))
		next.fcntl(fd, F_SETFL, flags);
	return ret;
}

static void disconnect(int fd)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	next.connect(fd, &unspec, sizeof(unspec));
	option_int(fd, SOL_SOCKET, SO_ERROR, 0); /* a reset of our own making is not news */
}

static ssize_t request_write(const struct conn *conn, uint8_t buf[CONVERT_MESSAGE_MAX])
{
	struct convert_span cookie =
		converters_cookie(settings, conn->converter, conn->cookie_number);

	return handshake_request(buf, CONVERT_MESSAGE_MAX, &conn->peer, cookie.data, cookie.len);
}

/* The SYN, with as much of @request as fits. Returns 0 or -errno. */
static int syn_send(struct conn *conn, int fd, const uint8_t *request, size_t len)
{
	const union sockaddr_ip *converter = &conn->converter_addr;
	const int on = 1;
	ssize_t sent;
	int ret;

	if (converters_take_syn_data(conn->converter) &&
	    next.setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0) {
		sent = next.sendto(fd, request, len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL,
				   &converter->sa, sockaddr_ip_len(converter));
		if (sent >= 0 || errno == EINPROGRESS) {
			conn->request_sent = sent > 0 ? (uint16_t)sent : 0;
			conn->syn_data = sent > 0;
			return 0;
		}
		if (errno != EOPNOTSUPP) /* sysctl tcp_fastopen without its bit 0x1 */
			return -errno;
	}
	ret = connect_nonblocking(fd, converter);
	return ret == -EINPROGRESS ? 0 : ret;
}

/* Asks the converter, with the cookie that is now known. The conn is claimed. Returns 0 or -errno. */
static int ask(struct conn *conn, int fd)
{
	uint8_t request[CONVERT_MESSAGE_MAX];
	ssize_t len;
	int ret;

	conn->cookie_number = converters_cookie_current(conn->converter);
	conn->request_sent = 0;
	conn->syn_data = conn->want_output = false;
	len = request_write(conn, request);
	if (len < 0)
		return (int)len;
	watch_mask(conn); /* before anything can happen that the application would see */
	ret = syn_send(conn, fd, request, (size_t)len);
	if (ret < 0)
		return ret;
	conn->want_output = conn->request_sent < len;
	if (conn->want_output)
		watch_mask(conn);
	return 0;
}

static bool is_v6only(int fd, int family)
{
	return family == AF_INET6 && option_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
}

/* @conn becomes PENDING. Returns 0, or -errno with nothing changed. */
static int attempt_start(struct conn *conn, int fd)
{
	struct conn_claim claim;
	int ret;

	if (!conn_claim(conn, CONN_IDLE, &claim))
		return 0; /* another thread connects the same socket */
	ret = ask(conn, fd);
	if (ret < 0)
		watch_restore(conn);
	conn_release(conn, ret < 0 ? CONN_IDLE : CONN_PENDING, &claim);
	return ret;
}

int conversion_start(struct conn *conn, int fd, const union sockaddr_ip *server)
{
	enum policy_verdict verdict = policy_decide(settings, server);
	const char *reason;
	int family, index, ret;

	if (verdict != POLICY_CONVERT)
		return go_directly(server, policy_reason(verdict));
	family = option_int(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	if (family == AF_INET && server->sa.sa_family != AF_INET)
		return CONVERSION_DIRECT; /* the kernel has an errno for it */
	index = converters_choose(settings, server, family, is_v6only(fd, family),
				  &conn->converter_addr, &verdict, &reason);
	if (index < 0 && verdict != POLICY_CONVERT)
		return go_directly(server, reason);
	if (index < 0)
		return go_without_converter(server, ENETUNREACH, reason);

	conn->peer = *server;
	conn->fd = fd;
	conn->converter = (uint8_t)index;
	conn->wrote = conn->connect_told = conn->cookie_asked = false;
	atomic_store(&conn->error, 0);
	clock_gettime(CLOCK_MONOTONIC, &conn->started);
	ret = attempt_start(conn, fd);
	return ret < 0 ? go_without_converter(server, -ret, strerrordesc_np(-ret)) : 0;
}

/* The rest of the request, once the handshake allows. Returns 0, -EAGAIN or -errno. */
static int request_send_rest(struct conn *conn, int fd)
{
	uint8_t request[CONVERT_MESSAGE_MAX];
	ssize_t len = request_write(conn, request);
	ssize_t sent;

	if (len < 0)
		return (int)len;
	sent = next.send(fd, request + conn->request_sent, (size_t)(len - conn->request_sent),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	conn->request_sent = (uint16_t)(conn->request_sent + sent);
	if (conn->request_sent < len)
		return -EAGAIN;
	conn->want_output = false;
	watch_mask(conn);
	return 0;
}

static void lowat_raise(struct conn *conn, int fd, size_t bytes)
{
	const int want = (int)bytes;

	if (!conn->rcvlowat)
		conn->rcvlowat = option_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof(want));
}

static void lowat_restore(struct conn *conn, int fd)
{
	if (conn->rcvlowat)
		next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &conn->rcvlowat, sizeof(int));
	conn->rcvlowat = 0;
}

/*
 * How the request got there, for the log; whether its ride in the SYN was acknowledged
 * says something about the path, which is kept. A connection that has been reset since
 * knows nothing of it any more.
 */
static const char *request_ride(const struct conn *conn, int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	bool taken;

	if (!conn->syn_data)
		return "request behind the handshake";
	if (next.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
	    info.tcpi_state == TCPI_STATE_CLOSE)
		return "reset since";
	taken = info.tcpi_options & TCPI_OPT_SYN_DATA;
	converters_note_syn_data(conn->converter, taken);
	return taken ? "request taken in the SYN" : "request not taken in the SYN";
}

static enum conn_state settle_done(struct conn *conn, int fd, size_t length)
{
	uint8_t response[CONVERT_MESSAGE_MAX];

	while (length) {
		ssize_t got = next.recv(fd, response, length, MSG_DONTWAIT);

		if (got <= 0)
			break; /* all of it was there a moment ago */
		length -= (size_t)got;
	}
	lowat_restore(conn, fd);
	log_verdict(conn,
		    option_int(fd, IPPROTO_TCP, TCP_IS_MPTCP, 0) ? "converted over MPTCP, " :
								   "converted over TCP, ",
		    request_ride(conn, fd));
	watch_restore(conn);
	return CONN_DONE;
}

static enum conn_state settle_failed(struct conn *conn, int fd, int error, const char *reason)
{
	lowat_restore(conn, fd);
	log_verdict(conn, "failed: ", reason);
	disconnect(fd);
	atomic_store(&conn->error, error);
	watch_restore(conn);
	return CONN_FAILED;
}

/* The converter is of no use: without it, on the same socket. */
static enum conn_state settle_directly(struct conn *conn, int fd, int error, const char *reason)
{
	int ret;

	if (!settings->fail_closed)
		converters_rest(conn->converter, CONVERTER_REST_SECONDS);
	if (conn->wrote || settings->fail_closed) /* what was written is with the converter */
		return settle_failed(conn, fd, error, reason);
	lowat_restore(conn, fd);
	log_verdict(conn, "direct, the converter fails: ", reason);
	disconnect(fd);
	ret = connect_nonblocking(fd, &conn->peer);
	if (ret < 0 && ret != -EINPROGRESS)
		return settle_failed(conn, fd, -ret, strerrordesc_np(-ret));
	watch_restore(conn);
	return CONN_DIRECT;
}

static enum conn_state settle_broken(struct conn *conn, int fd, int error)
{
	int seen = conversion_take_error(conn); /* by wait_once(): the kernel tells it once */
	int pending = option_int(fd, SOL_SOCKET, SO_ERROR, 0);

	error = seen ? seen : pending ? pending : error;
	return settle_directly(conn, fd, error == ENOTCONN ? ECONNREFUSED : error,
			       strerrordesc_np(error));
}

/*
 * The converter wants a cookie and has given it (Section 6.2.7): a reset, and the same request
 * again with the cookie, on the same descriptor.
 */
static enum conn_state ask_with_cookie(struct conn *conn, int fd)
{
	int ret;

	conn->cookie_asked = true;
	lowat_restore(conn, fd);
	disconnect(fd);
	ret = ask(conn, fd);
	return ret < 0 ? settle_directly(conn, fd, -ret, strerrordesc_np(-ret)) : CONN_PENDING;
}

static bool peer_has_closed(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return next.poll(&end, 1, 0) > 0 && end.revents;
}

/*
 * What the bytes that have arrived say. Returns 0 with @out set, or -errno, -EAGAIN if
 * there are none. An unfinished response that nothing can follow is a closed stream:
 * looked at again after the end was seen, since its last bytes may have come with it.
 */
static int response_judge(const struct conn *conn, int fd, uint8_t response[CONVERT_MESSAGE_MAX],
			  struct handshake_step *out)
{
	for (bool ended = false;; ended = true) {
		ssize_t got = next.recv(fd, response, CONVERT_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);

		if (got < 0)
			return -errno;
		if (got == 0) {
			*out = handshake_on_close();
			return 0;
		}
		*out = handshake_on_bytes(response, (size_t)got, &conn->peer);
		if (out->verdict != HANDSHAKE_NEED_MORE)
			return 0;
		if (ended)
			*out = handshake_on_close();
		if (ended || !peer_has_closed(fd))
			return 0;
	}
}

/* One step of a claimed conn; returns the state to release it with. */
static enum conn_state step(struct conn *conn, int fd)
{
	struct handshake_step told = { .verdict = HANDSHAKE_NEED_MORE };
	uint8_t response[CONVERT_MESSAGE_MAX];
	int ret = conn->want_output ? request_send_rest(conn, fd) : 0;

	if (ret == 0)
		ret = response_judge(conn, fd, response, &told);
	if (ret == -EAGAIN)
		return CONN_PENDING;
	if (ret < 0)
		return settle_broken(conn, fd, -ret);
	switch (told.verdict) {
	case HANDSHAKE_DONE:
		return settle_done(conn, fd, told.length);
	case HANDSHAKE_NEED_MORE:
		lowat_raise(conn, fd, told.length);
		return CONN_PENDING;
	case HANDSHAKE_FAIL:
		break;
	}
	if (told.cookie.len && !conn->cookie_asked && !conn->wrote &&
	    converters_learn_cookie(conn->converter, told.cookie))
		return ask_with_cookie(conn, fd);
	if (told.fault == HANDSHAKE_FAULT_PROTOCOL)
		return settle_directly(conn, fd, told.error, told.reason);
	return settle_failed(conn, fd, told.error, told.reason);
}

bool conversion_is_ripe(const struct conn *conn, int fd)
{
	struct pollfd ready = { .fd = fd, .events = conversion_poll_events(conn) };

	return next.poll(&ready, 1, 0) != 0;
}

enum conn_state conversion_progress(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (conn_is_pending(conn) && conversion_is_ripe(conn, fd) && conn_claim(conn, CONN_PENDING, &claim))
		conn_release(conn, step(conn, fd), &claim);
	return conn_state_unclaimed(conn);
}

short conversion_poll_events(const struct conn *conn)
{
	return conn->want_output ? POLLIN | POLLOUT : POLLIN;
}

int conversion_take_error(struct conn *conn)
{
	return atomic_exchange(&conn->error, 0);
}

/* Milliseconds left of SO_SNDTIMEO since connect(); -1: no limit. */
static int time_left(const struct conn *conn, const struct timeval *limit)
{
	struct timespec now;
	int64_t ms;

	if (!limit->tv_sec && !limit->tv_usec)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (limit->tv_sec - (now.tv_sec - conn->started.tv_sec)) * 1000 + limit->tv_usec / 1000 -
	     (now.tv_nsec - conn->started.tv_nsec) / 1000000;
	return ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/*
 * Waits until the response, or the part of it that is missing, is there. Without a time
 * limit by recv(2), which the kernel restarts after a signal exactly when it would
 * restart connect(2): under SA_RESTART. Returns 0 (look again) or -errno.
 */
static int wait_once(struct conn *conn, int fd, const struct timeval *limit)
{
	struct pollfd ready = { .fd = fd, .events = conversion_poll_events(conn) };
	uint8_t response[CONVERT_MESSAGE_MAX];
	int left = time_left(conn, limit);
	int ret;

	if (left < 0 && !conn->want_output) {
		if (next.recv(fd, response, sizeof(response), MSG_PEEK) >= 0)
			return 0;
		if (errno == EINTR)
			return -EINTR;
		if (errno != EAGAIN && errno != EWOULDBLOCK) {
			atomic_store(&conn->error, errno);
			return 0;
		}
	}
	/* A time limit, O_NONBLOCK or SO_RCVTIMEO. */
	ret = next.poll(&ready, 1, left);
	if (ret < 0)
		return -errno;
	return ret == 0 ? -EINPROGRESS : 0;
}

int conversion_wait(struct conn *conn, int fd)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);
	int ret = 0;

	next.getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &len);
	while (ret == 0 && conversion_progress(conn, fd) == CONN_PENDING)
		ret = wait_once(conn, fd, &limit);
	return conn_is_pending(conn) ? ret : 0;
}
