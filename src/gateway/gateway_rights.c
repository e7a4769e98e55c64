/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_rights.c - the calls of src/hold and src/serve that need a right, in a process that has it; the service manager
 *
 * convertd's workers ask another process, which has the rights (daemon/warden_message.h). A gateway has them itself, since it marks each
 * packet: that needs CAP_NET_ADMIN.
 */
#include "config.h"

#include "gateway/gateway_rights.h"

#include "common/os.h"
#include "daemon/warden_message.h"
#include "hold/hold_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct queue_owner *owner;

/* ----- netfilter queues ----- */

static bool allows(const void *policy, const struct in6_addr *destination, uint16_t port)
{
	(void)policy, (void)destination, (void)port;
	return true;
}

/* Carries verdicts out. In a thread of its own, since a worker that gives its queue up waits for that. */
static void *serve_queues(void *arg)
{
	const size_t count = queue_owner_count(owner);
	struct pollfd *sockets = calloc(count, sizeof(*sockets));
	size_t open;

	(void)arg;
	do {
		open = 0;
		for (size_t i = 0; sockets && i < count; i++) {
			sockets[i] = (struct pollfd){ .fd = queue_owner_socket(owner, i), .events = POLLIN };
			open += sockets[i].fd >= 0;
		}
		if (open && poll(sockets, (nfds_t)count, -1) > 0)
			for (size_t i = 0; i < count; i++)
				if (sockets[i].revents)
					queue_owner_serve(owner, i, allows, NULL);
	} while (open);
	free(sockets);
	return NULL;
}

int gateway_queues_own(uint16_t from, size_t count)
{
	pthread_t thread;
	int error = queue_owner_create(&owner, from, count);

	if (!error)
		error = -pthread_create(&thread, NULL, serve_queues, NULL);
	if (!error)
		pthread_detach(thread);
	return error;
}

uint16_t gateway_queues_first(void)
{
	return queue_owner_first(owner);
}

int rights_get_queue(size_t index, int *packets, int *verdicts)
{
	*packets = fcntl(queue_owner_packets(owner, index), F_DUPFD_CLOEXEC, 0);
	*verdicts = queue_owner_take_verdicts(owner, index);
	return *packets < 0 ? -errno : 0;
}

/* ----- sockets ----- */

/* The listener takes connections to any address: packets come to it only if the rules divert them. */
int rights_bind(int fd, const union sockaddr_ip *address)
{
	static const int on = 1;
	const bool v4 = address->sa.sa_family == AF_INET;

	if (setsockopt(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof(on)) < 0)
		return -errno;
	return bind(fd, &address->sa, sockaddr_ip_len(address)) < 0 ? -errno : 0;
}

int congestion_set(int fd, const char *name)
{
	return *name && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) < 0 ? -errno : 0;
}

/* ----- the service manager ----- */

void gateway_notify(const char *format, ...)
{
	struct service_manager manager;
	char text[512];
	va_list args;
	int fd;

	service_manager_read(&manager, getenv("NOTIFY_SOCKET"));
	fd = service_manager_connect(&manager);
	if (fd < 0)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&manager.address, manager.len);
	close(fd);
}
