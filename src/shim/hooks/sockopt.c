/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockopt.c - hooks for reading and setting a socket's options
 *
 * The application has made a TCP socket and shall see one: a socket with a pending connection looks as in SYN_SENT, and an MPTCP socket
 * answers as a TCP socket would. If possible we ask the kernel first and change its answer, since the kernel has then shown that the
 * application's memory is writable. Else we copy memory as the kernel does (usermem.h).
 */
#include "config.h"

#include "shim/socket/conn.h"

#include "common/socket_options.h"
#include "common/tcp.h"
#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/connect/gate.h"
#include "shim/socket/app_options.h"
#include "shim/system/next.h"
#include "shim/connect/connect.h"
#include "shim/system/rings.h"
#include "shim/system/usermem.h"

#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

#ifndef SO_PEERNAME
#define SO_PEERNAME 28
#endif

/*
 * Has a ring told the application that the pending connection is writable? A program asks for the socket's error once it has heard that,
 * and no hook has told it. Then the ring is about to read, so we end the handshake first.
 */
static bool is_told_by_ring(const struct conn *conn, int fd)
{
	return (atomic_load(&conn->unseen) || conn_ring_may_use(conn)) && conn_is_pending(conn) && gate_is_writable(fd) &&
	       rings_in_use(fd);
}

/*
 * Answers SO_ERROR. If a ring has told of the connection, the answer must be final: we wait for a failed blind request that has just begun
 * anew (connect/ring_use.c). Like the kernel, we take the error as soon as we know the room for it, even if it can't be written then.
 */
static int get_error(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	socklen_t room;
	bool told;
	int error;

	if (conn_handled(fd) == conn && usermem_read(&room, len, sizeof(room)) && (int)room >= 0) {
		told = is_told_by_ring(conn, fd);
		conversion_progress(conn, fd);
		if (told)
			conversion_conclude_now(conn, fd);
		/* While it is pending, an error of the kernel is the attempt's: the next step needs it. */
		if (conn_has_failed(conn) || conn_is_pending(conn)) {
			error = conn_has_failed(conn) ? conn_take_error(conn) : 0;
			return hook_result(usermem_answer(value, len, &error, sizeof(error), USERMEM_OPTION));
		}
	}
	ring_use_asked(conn, fd);
	if (next.getsockopt(fd, level, name, value, len) != 0)
		return -1;
	if (usermem_read(&room, len, sizeof(room)) && room == sizeof(error) && usermem_read(&error, value, sizeof(error)))
		reset_told(fd, error);
	return 0;
}

/* Replaces the int that the kernel has written by @answer, as far as there is room. */
static void rewrite(void *value, const socklen_t *len, int answer)
{
	memcpy(value, &answer, *len < sizeof(answer) ? *len : sizeof(answer));
}

/*
 * Finds the application's value of an option if the kernel has another one meanwhile: protocol and family of a socket in place of the
 * application's; on a pending connection SO_RCVLOWAT, which waits for the rest of the response, and the keepalive, which checks the
 * converter.
 */
static bool is_shown_otherwise(struct conn *conn, int level, int name, int *value)
{
	if (level != SOL_SOCKET || name == SO_KEEPALIVE)
		return keepalive_kept(conn, level, name, value);
	*value = name == SO_PROTOCOL ? (conn->socket.mptcp ? IPPROTO_TCP : 0) :
		 name == SO_DOMAIN   ? (conn->socket.shown_ipv4 ? AF_INET : 0) :
				       conn->socket.rcvlowat;
	return *value;
}

static int get_shown(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	int shown;

	if (next.getsockopt(fd, level, name, value, len) != 0)
		return -1;
	if (is_shown_otherwise(conn, level, name, &shown))
		rewrite(value, len, shown);
	return 0;
}

/* TCP_INFO doesn't say ESTABLISHED before the server has answered. */
static int get_tcp_info(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	bool pending = conn_is_pending(conn) && phase_in(conversion_progress(conn, fd), PHASES_PENDING);

	if (next.getsockopt(fd, level, name, value, len) != 0)
		return -1;
	if (pending && *len)
		*(uint8_t *)value = TCPINFO_SYN_SENT; /* tcpi_state is its first byte */
	return 0;
}

/* SO_PEERNAME is like getpeername(2), but ignores the state, and refuses more room than the address needs. */
static int get_peer(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	union sockaddr_ip connected;
	socklen_t bytes = sizeof(connected.in), room;

	if (!conn_in(conn, PHASES_PENDING | PHASES_CONFIRMED | PHASE(DONE)) ||
	    !usermem_read(&room, len, sizeof(room)) || (int)room < 0)
		return next.getsockopt(fd, level, name, value, len);
	if (next.getsockopt(fd, level, name, &connected, &bytes) != 0)
		return -1;
	if (sockaddr_ip_len(conn_peer(conn)) < room)
		return hook_result(-EINVAL);
	return hook_result(usermem_answer(value, len, conn_peer(conn), room, USERMEM_OPTION));
}

/* TCP_ULP: the kernel calls MPTCP an upper layer protocol. A TCP socket has none, and answers with a length of 0. */
static int get_ulp(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	return conn->socket.mptcp ? hook_result(usermem_answer(value, len, NULL, 0, USERMEM_OPTION)) :
			     next.getsockopt(fd, level, name, value, len);
}

static const struct {
	int level, name;
	int (*get)(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len);
} answers[] = {
	{ SOL_SOCKET, SO_ERROR, get_error },        { SOL_SOCKET, SO_PEERNAME, get_peer },
	{ IPPROTO_TCP, TCP_INFO, get_tcp_info },    { IPPROTO_TCP, TCP_ULP, get_ulp },
	{ SOL_SOCKET, SO_PROTOCOL, get_shown },     { SOL_SOCKET, SO_DOMAIN, get_shown },
	{ SOL_SOCKET, SO_RCVLOWAT, get_shown },     { SOL_SOCKET, SO_KEEPALIVE, get_shown },
	{ IPPROTO_TCP, TCP_KEEPIDLE, get_shown },   { IPPROTO_TCP, TCP_KEEPINTVL, get_shown },
	{ IPPROTO_TCP, TCP_KEEPCNT, get_shown },
};

/* IP_MTU and IPV6_MTU, which MPTCP doesn't know: the path's MTU from TCP_INFO, or ENOTCONN before there is one. */
static int get_mtu(int fd, void *value, socklen_t *len)
{
	struct tcp_info info;
	socklen_t bytes = sizeof(info), room;
	int mtu;

	if (!usermem_read(&room, len, sizeof(room)))
		return hook_result(-EFAULT);
	if (room > INT_MAX)
		return hook_result(-EINVAL);
	if (next.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || !info.tcpi_pmtu)
		return hook_result(-ENOTCONN);
	mtu = (int)info.tcpi_pmtu;
	return hook_result(usermem_answer(value, len, &mtu, sizeof(mtu), USERMEM_OPTION));
}

/*
 * Asks a new TCP socket, which has the noted advice, for an option that MPTCP doesn't know. The answer is right, since the
 * application can have set such an option only as advice.
 */
static int get_elsewhere(const struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	int tcp_like, ret;

	if ((level == IPPROTO_IP && name == IP_MTU) || (level == IPPROTO_IPV6 && name == IPV6_MTU))
		return get_mtu(fd, value, len);
	tcp_like = replace_tcp_like(conn, fd);
	if (tcp_like < 0)
		return next.getsockopt(fd, level, name, value, len);
	ret = next.getsockopt(tcp_like, level, name, value, len) == 0 ? 0 : -errno;
	next_close_now(tcp_like);
	return hook_result(ret);
}

/* Is there room for a part of an int only? MPTCP writes one byte then, and TCP as much as fits. */
static bool is_short(int level, const socklen_t *len)
{
	socklen_t room;

	return level == IPPROTO_TCP && usermem_read(&room, len, sizeof(room)) && (room == 2 || room == 3);
}

static int get_short(int fd, int level, int name, void *value, socklen_t *len)
{
	socklen_t bytes = sizeof(int);
	int answer;

	if (next.getsockopt(fd, level, name, &answer, &bytes) != 0)
		return -1;
	return hook_result(usermem_answer(value, len, &answer, bytes, USERMEM_OPTION));
}

static int get_any(struct conn *conn, int fd, int level, int name, void *value, socklen_t *len)
{
	int ret, late;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].name == name && answers[i].level == level)
			return answers[i].get(conn, fd, level, name, value, len);
	if (!conn->socket.mptcp)
		return next.getsockopt(fd, level, name, value, len);
	if (options_late(conn, level, name, &late))
		return hook_result(usermem_answer(value, len, &late, sizeof(late), USERMEM_OPTION));
	if (options_is_advice_noted(conn, level, name))
		return get_elsewhere(conn, fd, level, name, value, len);
	ret = is_short(level, len) ? get_short(fd, level, name, value, len) :
				     next.getsockopt(fd, level, name, value, len);
	return ret < 0 && errno == EOPNOTSUPP ? get_elsewhere(conn, fd, level, name, value, len) :
						ret;
}

HOOK(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len))
{
	int saved_errno = errno, ret;
	struct conn *conn = conn_of(fd);

	if (!conn)
		return next.getsockopt(fd, level, name, value, len);
	ret = get_any(conn, fd, level, name, value, len);
	if (ret == 0)
		errno = saved_errno;
	return ret;
}

/*
 * Sets an option on a new TCP socket, and gets the value that it has then, of @bytes bytes. Returns 0 or a positive errno of TCP; -1: there
 * is no such socket.
 */
static int set_elsewhere(const struct conn *conn, int fd, int level, int name, const void *value, socklen_t len, int *taken,
			 socklen_t *bytes)
{
	int tcp_like = replace_tcp_like(conn, fd), ret;

	if (tcp_like < 0)
		return -1;
	ret = next.setsockopt(tcp_like, level, name, value, len) == 0 ? 0 : errno;
	*bytes = sizeof(*taken);
	if (ret || next.getsockopt(tcp_like, level, name, taken, bytes) != 0)
		*bytes = 0;
	next_close_now(tcp_like);
	return ret;
}

/*
 * Handles an option that MPTCP has refused (@refusal) and that TCP may accept. Notes it if a connection can do without. Returns 0; TCP's
 * -errno for the value; or -@refusal if the option matters.
 */
static int set_refused(struct conn *conn, int fd, int level, int name, const void *value, socklen_t len, int refusal)
{
	socklen_t bytes;
	int taken, ret = set_elsewhere(conn, fd, level, name, value, len, &taken, &bytes);

	if (socket_advice_index(level, name) < 0)
		return ret > 0 ? -ret : -refusal;
	if (ret > 0)
		return -ret;
	if (ret < 0) {
		bytes = len < sizeof(taken) ? len : sizeof(taken);
		if (!usermem_read(&taken, value, bytes))
			return -EFAULT;
	}
	options_advise(conn, level, name, &taken, bytes);
	return 0;
}

/* Handles an option that MPTCP refuses after connect(), or doesn't know. Returns 0, or TCP's -errno for the value. */
static int set_late(struct conn *conn, int fd, int level, int name, const void *value, socklen_t len)
{
	socklen_t bytes;
	int taken, number, ret = set_elsewhere(conn, fd, level, name, value, len, &taken, &bytes);

	if (ret > 0)
		return -ret;
	if (usermem_read(&number, value, sizeof(number)))
		options_note_late(conn, level, name, number);
	return 0;
}

HOOK(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len))
{
	int saved_errno = errno, ret;
	struct conn *conn;

	if (level == SOL_SOCKET && name == SO_RCVLOWAT && (conn = conn_handled(fd)) &&
	    lowat_keep(conn, value, len))
		return 0;
	ret = next.setsockopt(fd, level, name, value, len);
	if (ret == 0) {
		conn = conn_of_phase(fd, PHASE(IDLE) | PHASES_UNFINISHED);
		if (conn) {
			options_note(conn, level, name, value, len);
			keepalive_note(conn, fd, level, name);
		}
	} else if ((errno == EINVAL || errno == EOPNOTSUPP) && options_is_late(level, name) &&
		   (conn = conn_of(fd)) && conn->socket.mptcp) {
		ret = hook_result(set_late(conn, fd, level, name, value, len));
	} else if ((errno == ENOPROTOOPT || errno == EOPNOTSUPP) && (conn = conn_of(fd)) && conn->socket.mptcp) {
		ret = hook_result(set_refused(conn, fd, level, name, value, len, errno));
	} else {
		return ret;
	}
	if (ret == 0)
		errno = saved_errno;
	return ret;
}

/* FIONREAD of MPTCP is 1 at the end of the stream and on a socket that isn't connected (Linux 6.18), where TCP's is 0. */
static void correct_available(int fd, int *available)
{
	char byte;

	if (*available == 1 && input_is_mptcp(fd) &&
	    next.recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
		*available = 0;
}

/* Answers 0, since the bytes of request and response aren't the application's. Returns 0 or -EFAULT. */
static int answer_nothing(int *answer)
{
	const int nothing = 0;

	return usermem_write(answer, &nothing, sizeof(nothing)) ? 0 : -EFAULT;
}

static int ioctl_available(int fd, unsigned int request, int *answer)
{
	struct conn *conn = conn_handled(fd);
	int saved_errno = errno;

	if (conn)
		conversion_progress(conn, fd);
	if (conn && conn_handled(fd)) {
		errno = saved_errno;
		return hook_result(answer_nothing(answer));
	}
	if (next.ioctl(fd, request, answer) != 0)
		return -1;
	correct_available(fd, answer);
	errno = saved_errno;
	return 0;
}

/* SIOCOUTQ, SIOCOUTQNSD: bytes that are not acknowledged, or not sent, yet. The request isn't counted. */
static int ioctl_unsent(int fd, unsigned int request, int *answer)
{
	struct conn *conn = conn_handled(fd);
	int ret = next.ioctl(fd, request, answer);

	if (ret == 0 && conn && conn_is_pending(conn) && !conn_has(conn, CONN_WROTE))
		*answer = 0;
	return ret;
}

/* FIOASYNC: O_ASYNC on or off. */
static int ioctl_async(int fd, unsigned int request, int *on)
{
	int value;

	if (conn_handled(fd) && usermem_read(&value, on, sizeof(value)) && value)
		conversion_before_signals(fd);
	return next.ioctl(fd, request, on);
}

/* SIOCATMARK: MPTCP knows no urgent data and refuses the request; TCP without urgent data answers 0. */
static int ioctl_at_mark(int fd, unsigned int request, int *answer)
{
	int saved_errno = errno;

	/* The kernel takes an unknown request for a network device's, whose argument is larger: hence EFAULT, too. */
	if (next.ioctl(fd, request, answer) == 0)
		return 0;
	if ((errno != ENOTTY && errno != EFAULT) || !conn_of(fd))
		return -1;
	errno = saved_errno;
	return hook_result(answer_nothing(answer));
}

/* The kernel uses 32 bits of the request, and musl's prototype has no more. */
static int ioctl_known(int fd, unsigned long number, void *arg)
{
	const unsigned int request = (unsigned int)number;

	switch (arg ? request : 0) {
	case FIONREAD:
		return ioctl_available(fd, request, arg);
	case SIOCOUTQ:
	case SIOCOUTQNSD:
		return ioctl_unsent(fd, request, arg);
	case FIOASYNC:
		return ioctl_async(fd, request, arg);
	case SIOCATMARK:
		return ioctl_at_mark(fd, request, arg);
	default:
		return next.ioctl(fd, request, arg);
	}
}

VARIADIC_HOOK(ioctl, unsigned long, ioctl_known)

/* The C library's sockatmark() calls its own ioctl(), which the hook above doesn't see. */
HOOK(int, sockatmark, (int fd))
{
	int mark;

	return ioctl_known(fd, SIOCATMARK, &mark) < 0 ? -1 : mark;
}
