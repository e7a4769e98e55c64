/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_rights.c - the calls of src/hold and src/serve that need a right, in a process that has it; the service manager
 *
 * convertd's workers ask another process, which has the rights (daemon/warden_message.h). A gateway has them itself, since it marks each
 * packet: that needs CAP_NET_ADMIN. It sends released SYNs from raw sockets: CAP_NET_RAW.
 */
#include "config.h"

#include "gateway/gateway.h"

#include "common/os.h"
#include "daemon/warden_message.h"
#include "hold/hold_queue.h"
#include "hold/syn_packet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct queue_owner *owner;

/* ----- released SYNs ----- */

/* Raw sockets, by which released SYNs go to this host itself; -1: none. */
static int raw_v4 = -1, raw_v6 = -1;

/* The port of the transparent listener. */
static uint16_t listener_port;

static int open_raw(int family, uint32_t mark)
{
	const int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Sends a SYN that is for the listener. One that is to be refused stays with the kernel's rules. */
static bool send_syn(const uint8_t *packet, size_t len)
{
	union sockaddr_ip to = { 0 };
	struct syn_packet syn;
	int fd;

	if (syn_packet_parse(packet, len, &syn) != SYN_PACKET_OK || syn.urgent != SYN_PACKET_MARK)
		return false;
	/* The port of a raw socket's peer is a protocol, and stays 0. */
	sockaddr_ip_set(&to, AF_UNSPEC, &syn.flow.destination, 0);
	fd = to.sa.sa_family == AF_INET ? raw_v4 : raw_v6;
	return fd >= 0 && sendto(fd, packet, len, MSG_DONTWAIT, &to.sa, sockaddr_ip_len(&to)) == (ssize_t)len;
}

/* ----- netfilter queues: each worker carries its verdicts out itself, which spares two wake-ups for each connection ----- */

int gateway_queues_own(uint16_t from, size_t count, uint32_t mark, uint16_t port)
{
	int error = queue_owner_create(&owner, from, count);

	listener_port = port;
	if (error)
		return error;
	queue_owner_set_send(owner, send_syn);
	raw_v6 = open_raw(AF_INET6, mark);
	raw_v4 = open_raw(AF_INET, mark);
	return raw_v4 < 0 ? -errno : 0;
}

uint16_t gateway_queues_first(void)
{
	return queue_owner_first(owner);
}

int rights_get_queue(size_t index, int *packets, int *verdicts)
{
	*packets = fcntl(queue_owner_packets(owner, index), F_DUPFD_CLOEXEC, 0);
	*verdicts = -1;
	return *packets < 0 ? -errno : 0;
}

bool rights_give_verdicts(size_t index, int fd, const uint8_t *verdicts, size_t len)
{
	(void)fd;
	return queue_owner_carry_out(owner, index, verdicts, len, NULL, NULL);
}

void rights_give_queue_up(size_t index, int fd)
{
	(void)fd;
	queue_owner_close(owner, index);
}

/* ----- sockets ----- */

/* The listener takes connections to any address: packets come to it only if the rules divert them. Others serve the metrics. */
int rights_bind(int fd, const union sockaddr_ip *address)
{
	static const int on = 1;
	const bool v4 = address->sa.sa_family == AF_INET;

	if (sockaddr_ip_port(address) == listener_port &&
	    setsockopt(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof(on)) < 0)
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
