/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * congestion.c - sets the congestion control of TCP and MPTCP sockets, by the kernel's names
 *
 * A name is checked by trying it on a socket: the kernel may have to load a module that
 * no list shows, and may forbid an algorithm that it lists.
 */
#include "config.h"

#include "convertd/net/congestion.h"

#include "convertd/base/rights.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads the first line of a file to @buf, without the newline; "" where it can't be read. */
static void read_line(const char *path, char *buf, int size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(buf, size, file))
		buf[0] = '\0';
	if (file)
		fclose(file);
	buf[strcspn(buf, "\n")] = '\0';
}

int congestion_set(int fd, const char *name)
{
	char preset[CONGESTION_NAME_MAX + 1];

	if (!*name) {
		read_line("/proc/sys/net/ipv4/tcp_congestion_control", preset, sizeof(preset));
		name = preset;
	}
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
		return 0;
	return errno == EPERM ? rights_set_congestion(fd, name) : -errno;
}

int congestion_check(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), error;

	if (fd < 0)
		return -errno;
	error = congestion_set(fd, name);
	close(fd);
	return error;
}

const char *congestion_available(char buf[static CONGESTION_LIST_MAX])
{
	read_line("/proc/sys/net/ipv4/tcp_available_congestion_control", buf, CONGESTION_LIST_MAX);
	return buf;
}
