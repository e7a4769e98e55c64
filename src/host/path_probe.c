/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_probe.c - tests whether a path works, by a separate connection
 *
 * It is a plain TCP connection, since it tests the path and not Multipath TCP. Its SYN carries an Info TLV, or nothing if the kernel has no
 * Fast Open or data in SYNs gets lost, and the converter sends a SYN+ACK at once. That is enough: we read the response only if a SYN+ACK alone proves nothing (path_probe.whole). A reset then
 * ends the connection, and leaves nothing behind on either side.
 *
 * The shim avoids keeping descriptors in programs, but here it needs one for some hundred milliseconds. Programs that count their
 * descriptors do so from the lowest number on, so this one has a high number. Programs may close a descriptor that they didn't
 * open: SO_COOKIE shows that.
 */
#include "config.h"

#include "host/survey.h"

#include "client/converters.h"
#include "common/clock.h"
#include "host/networks.h"
#include "host/raw_io.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#define HIGH_NUMBER 500 /* below 1024, the default limit of a process and the limit of select(2) */

unsigned int path_probe_age(const struct path_probe *probe, int64_t now)
{
	return now > probe->sent ? (unsigned int)((now - probe->sent) / CLOCK_NS_PER_MS) : 0;
}

/* Returns the socket's cookie, which never changes; 0 if @fd isn't a socket. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie;

	return raw_get(fd, SOL_SOCKET, SO_COOKIE, &cookie, sizeof(cookie)) ? cookie : 0;
}

/* Moves @fd to a high number, and returns that; or @fd itself if none is free. */
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

/* Sends the SYN of a probe. The caller may be a signal handler with little stack, so the buffer fits only this message. */
static bool syn_send(int fd, const union sockaddr_ip *peer, bool plain)
{
	union sockaddr_ip to = *peer;
	uint8_t request[PATH_PROBE_REQUEST_MAX];
	const size_t len = plain ? 0 : path_probe_request(request);

	if (len && raw_set_int(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) &&
	    raw_sendto(fd, request, len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &to.sa, sockaddr_ip_len(&to)) >= 0)
		return true;
	return raw_connect(fd, &to.sa, sockaddr_ip_len(&to)) == 0 || errno == EINPROGRESS || errno == EALREADY;
}

bool path_probe_send(struct path_probe *probe, const struct path *path, bool plain)
{
	const int device = path->bind_device ? path->device : 0;
	const bool sent = path_probe_send_to(probe, converters_address(path->id.converter), &path->id.source, device, plain);

	probe->whole = path->facts.state == CACHE_PATH_REFUSES && !plain;
	return sent;
}

static uint32_t probe_mark;

void path_probe_mark(uint32_t mark)
{
	probe_mark = mark;
}

bool path_probe_send_to(struct path_probe *probe, const union sockaddr_ip *to, const struct in6_addr *source, int device, bool plain)
{
	static const struct linger reset = { .l_onoff = 1 };
	int fd = made_high(raw_socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));

	*probe = (struct path_probe){ .fd = -1, .sent = clock_ns() };
	if (fd < 0)
		return false;
	raw_set(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (probe_mark)
		raw_set_int(fd, SOL_SOCKET, SO_MARK, (int)probe_mark);
	if ((IN6_IS_ADDR_UNSPECIFIED(source) || network_bind(fd, source, device)) && syn_send(fd, to, plain)) {
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

/* Looks at the first bytes of the response. Returns whether they suffice to tell a converter, and sets probe->refused if it is none. */
static bool response_look(struct path_probe *probe)
{
	uint8_t header[CONVERT_HEADER_LEN];
	enum convert_status status;
	size_t length;
	const ssize_t got = raw_recv(probe->fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	status = got > 0 ? convert_message_length(header, (size_t)got, &length) : CONVERT_STATUS_BAD_MAGIC;
	probe->refused = status != CONVERT_STATUS_OK && status != CONVERT_STATUS_NEED_MORE;
	return status != CONVERT_STATUS_NEED_MORE;
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
		const int error = raw_get_socket(probe->fd, SO_ERROR, 0);

		/* a host that resets an established connection has answered before; we see that only if we look late */
		probe->refused = error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
	} else if (probe->whole && !response_look(probe)) {
		return false;
	} else if (!probe->refused) {
		raw_get(probe->fd, IPPROTO_TCP, TCP_INFO, &info, sizeof(info));
		probe->answered = true;
		probe->taken = info.tcpi_options & TCPI_OPT_SYN_DATA;
		probe->ms = info.tcpi_rtt ? info.tcpi_rtt / 1000 + 1 : path_probe_age(probe, clock_ns());
	}
	path_probe_close(probe);
	return probe->answered;
}
