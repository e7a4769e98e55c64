/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_probe.c - asks a path whether it works, by a connection of its own
 *
 * A plain TCP socket, since the path is asked and not Multipath TCP. What the converter answers isn't read: its SYN+ACK, which comes
 * at once to a request for information, says all. The connection then ends by a reset, which leaves nothing behind on either side.
 *
 * The shim keeps no descriptors in its programs, and here it has to for some hundred milliseconds. Programs that count their
 * descriptors do so from the lowest number on, so this one is high; programs that close what they didn't open are noticed by SO_COOKIE.
 */
#include "config.h"

#include "host/path_probe.h"

#include "client/converters.h"
#include "common/clock.h"
#include "host/raw_io.h"
#include "host/networks.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#define HIGH_NUMBER 500 /* below the 1024 that a process may have by default, and that select(2) takes */

unsigned int path_probe_age(const struct path_probe *probe, int64_t now)
{
	return now > probe->sent ? (unsigned int)((now - probe->sent) / CLOCK_NS_PER_MS) : 0;
}

/* Names a socket for its whole life; 0 where there is none. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie;

	return raw_get(fd, SOL_SOCKET, SO_COOKIE, &cookie, sizeof(cookie)) ? cookie : 0;
}

/* Returns @fd by a high number, or as it is where none is left. */
static int made_high(int fd)
{
	int high = fd < 0 ? -1 : raw_dup_above(fd, HIGH_NUMBER);

	if (high < 0)
		return fd;
	raw_close(fd);
	return high;
}

size_t path_probe_request(uint8_t request[static PATH_PROBE_REQUEST_MAX])
{
	struct convert_writer writer;
	ssize_t len;

	convert_writer_init(&writer, request, PATH_PROBE_REQUEST_MAX);
	convert_write_info(&writer);
	len = convert_writer_finish(&writer);
	return len > 0 ? (size_t)len : 0;
}

/* Sends the SYN of a probe. A signal handler with little stack may be what asks, so that there is room for this message alone. */
static bool syn_send(int fd, const union sockaddr_ip *converter, bool plain)
{
	union sockaddr_ip to = *converter;
	uint8_t request[PATH_PROBE_REQUEST_MAX];
	const size_t len = plain ? 0 : path_probe_request(request);

	if (len && raw_set_int(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) &&
	    raw_sendto(fd, request, len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &to.sa, sockaddr_ip_len(&to)) >= 0)
		return true;
	return raw_connect(fd, &to.sa, sockaddr_ip_len(&to)) == 0 || errno == EINPROGRESS || errno == EALREADY;
}

bool path_probe_send(struct path_probe *probe, const struct path *path, bool plain)
{
	static const struct linger reset = { .l_onoff = 1 };
	const union sockaddr_ip *converter = converters_address(path->id.converter);
	const bool usual = IN6_IS_ADDR_UNSPECIFIED(&path->id.source);
	int fd = made_high(raw_socket(converter->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));

	*probe = (struct path_probe){ .fd = -1, .sent = clock_ns() };
	if (fd < 0)
		return false;
	raw_set(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if ((usual || network_bind(fd, &path->id.source, path->bind_device ? path->device : 0)) && syn_send(fd, converter, plain)) {
		probe->fd = fd;
		probe->cookie = cookie_of(fd);
		probe->sent = clock_ns();
		return true;
	}
	raw_close(fd);
	return false;
}

void path_probe_close(struct path_probe *probe)
{
	if (probe->fd >= 0 && cookie_of(probe->fd) == probe->cookie)
		raw_close(probe->fd);
	probe->fd = -1;
}

bool path_probe_look(struct path_probe *probe)
{
	struct tcp_info info = { 0 };
	short events;

	if (probe->fd < 0)
		return probe->answered;
	if (cookie_of(probe->fd) != probe->cookie) {
		probe->fd = -1;
		return false;
	}
	events = raw_events(probe->fd, POLLIN | POLLOUT);
	if (!events)
		return false;
	if (events & POLLERR) {
		const int error = raw_get_int(probe->fd, SOL_SOCKET, SO_ERROR, 0);

		/* Who resets a connection has answered before; that is seen only where the look is late. */
		probe->refused = error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
	} else {
		raw_get(probe->fd, IPPROTO_TCP, TCP_INFO, &info, sizeof(info));
		probe->answered = true;
		probe->taken = info.tcpi_options & TCPI_OPT_SYN_DATA;
		probe->ms = info.tcpi_rtt ? info.tcpi_rtt / 1000 + 1 : path_probe_age(probe, clock_ns());
	}
	path_probe_close(probe);
	return probe->answered;
}
