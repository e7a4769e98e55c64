/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c - asks by a SYN of plain TCP whether a network works
 *
 * A subflow over a silent network tells that it works when its retransmission timer expires, or when Linux sends its SYN again, which may
 * be many seconds later. A SYN to the same peer and port tells at once, and passes wherever the subflow's own has passed. The connection is
 * reset as soon as the answer is there: nobody is to serve it.
 */
#include "config.h"

#include "paths/probe.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void drop(struct paths_probes *probes, size_t at)
{
	close(probes->list[at].fd);
	probes->list[at] = probes->list[--probes->count];
}

/* Returns a socket whose SYN is on its way, or -1. */
static int send_syn(const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	const struct linger reset = { .l_onoff = 1 };
	int device = (int)index;
	int fd = socket(peer->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, sizeof(device)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0 &&
	    bind(fd, &local->sa, sockaddr_ip_len(local)) == 0 &&
	    (connect(fd, &peer->sa, sockaddr_ip_len(peer)) == 0 || errno == EINPROGRESS))
		return fd;
	close(fd);
	return -1;
}

void paths_probe_send(struct paths_probes *probes, const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	int fd = send_syn(local, index, peer);

	for (size_t i = probes->count; i-- > 0;)
		if (sockaddr_ip_equal(&probes->list[i].local, local))
			drop(probes, i);
	if (fd >= 0 && probes->count == PATHS_OUTAGES_MAX)
		close(fd);
	else if (fd >= 0)
		probes->list[probes->count++] = (struct paths_probe){ .local = *local, .fd = fd };
}

size_t paths_probe_poll(const struct paths_probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX])
{
	for (size_t i = 0; i < probes->count; i++)
		out[i] = (struct pollfd){ .fd = probes->list[i].fd, .events = POLLOUT };
	return probes->count;
}

size_t paths_probe_take(struct paths_probes *probes, union sockaddr_ip out[static PATHS_OUTAGES_MAX])
{
	size_t found = 0;

	for (size_t i = probes->count; i-- > 0;) {
		struct pollfd ready = { .fd = probes->list[i].fd, .events = POLLOUT };
		int error = 0;
		socklen_t len = sizeof(error);

		if (poll(&ready, 1, 0) <= 0)
			continue;
		getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (!error || error == ECONNREFUSED)
			out[found++] = probes->list[i].local;
		drop(probes, i);
	}
	return found;
}

void paths_probe_end(struct paths_probes *probes)
{
	while (probes->count)
		drop(probes, 0);
}
