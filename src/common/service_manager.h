/* SPDX-License-Identifier: BSD-3-Clause */
/* service_manager.h - the socket to a service manager, which gets reports of a service's state: sd_notify(3) */
#ifndef COMMON_SERVICE_MANAGER_H
#define COMMON_SERVICE_MANAGER_H

#include <sys/socket.h>
#include <sys/un.h>

/* How long a message waits for a manager that has stopped reading, in milliseconds. */
#define SERVICE_MANAGER_WAIT_MS 100

struct service_manager {
	struct sockaddr_un address;
	socklen_t len; /* there is no manager */
};

/*
 * service_manager_read() - find the manager that the value of NOTIFY_SOCKET names
 * @path: an absolute path, or "@name" for the abstract namespace of unix(7). Any other value, NULL included, names no manager.
 */
void service_manager_read(struct service_manager *out, const char *path);

/*
 * service_manager_connect() - open a datagram socket to the manager, which the caller closes
 * A message fails with EAGAIN if the manager doesn't take it within SERVICE_MANAGER_WAIT_MS. Its queue holds net.unix.max_dgram_qlen
 * messages, often ten, and by default a sender waits for room in it without limit: a manager that is stopped or has crashed would stop its
 * services.
 * Returns -1 if there is no manager or no descriptor.
 */
int service_manager_connect(const struct service_manager *manager);

#endif
