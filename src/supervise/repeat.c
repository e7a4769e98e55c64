/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repeat.c - make a blind request again, on the program's socket
 *
 * The program has its EINPROGRESS and waits for the socket, while the supervisor ends the attempt and begins another one. Three
 * things must not happen:
 *
 *	the SYN+ACK comes, the program writes, and then the attempt is ended: bytes would be lost without an error. So it is ended by
 *	shutdown(2), which ends an attempt and nothing more if there is no SYN+ACK yet (inet_shutdown() in the kernel, under the
 *	socket's lock). If there is one it sends a FIN instead; then the connection is reset, and fails rather than being cut short.
 *
 *	the program's epoll instances see the socket hung up in between, and event loops (tokio's) never forget that. So its
 *	registrations are withdrawn for that moment. Threads in poll(2) and select(2) would see it, too (curl then gives up), and are
 *	stopped meanwhile (again.c).
 *
 *	the supervisor's duplicate keeps a socket alive that the program has closed. So it has one for this moment only.
 *
 * Plain TCP has ECONNRESET in SO_ERROR after it, which such a thread would see: these requests aren't made again.
 */
#include "config.h"

#include "supervise/repeat.h"

#include "client/handshake.h"
#include "supervise/kernel.h"
#include "supervise/places.h"
#include "supervise/tracee.h"

#include <stdlib.h>
#include <unistd.h>

void repeat_note(struct repeat *repeat, int fd, const void *message, size_t len)
{
	repeat->message = malloc(len);
	if (!repeat->message)
		return;
	memcpy(repeat->message, message, len);
	repeat->len = len;
	repeat->cookie = kernel_cookie(fd);
	repeat->inode = places_socket(fd);
}

int repeat_open(const struct repeat *repeat, pid_t tid, int at)
{
	int fd = tracee_get_fd(tid, at);

	if (fd >= 0 && kernel_cookie(fd) == repeat->cookie)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool repeat_send(const struct repeat *repeat, int fd, const struct path_start *start, unsigned int count)
{
	ssize_t sent;

	if (repeat->counted)
		handshake_count_repeat(repeat->message, count);
	if (kernel_tcp_info(fd).tcpi_state != TCPINFO_SYN_SENT || shutdown(fd, SHUT_WR) != 0)
		return false;
	/* All of the message has to go with the SYN, as it did before: the program counts on its part of it. */
	if (kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE && path_start_bind(start, fd) == 0) {
		sent = sendto(fd, repeat->message, repeat->len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &repeat->to.sa,
			      sockaddr_ip_len(&repeat->to));
		if (sent == (ssize_t)repeat->len)
			return true;
	}
	kernel_disconnect(fd);
	return false;
}
