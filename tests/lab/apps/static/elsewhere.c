/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elsewhere.c - a socket that gets another descriptor, process or server while it connects: elsewhere ADDRESS WORD [OTHER-ADDRESS]
 *
 * The socket is non-blocking, and not connected yet when this happens:
 *
 *	moved    it gets another descriptor, and loses its own
 *	child    a child goes on with it, and the parent closes it
 *	parent   a child connects it, and ends
 *	again    it is bound to a port; AF_UNSPEC ends the attempt, and a blocking connect() goes to the echo server at OTHER-ADDRESS
 *	refused  a connection to a closed port is refused, and a blocking connect() follows
 *
 * Then "hello" is echoed. Prints the echo and the peer, or an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT "hello"
#define ECHO_PORT 7
#define CLOSED_PORT 9
#define OWN_PORT 2345
#define PATIENCE_MS 30000

static void fail(const char *what, int error)
{
	printf("failed: %s: %s\n", what, strerror(error));
	exit(1);
}

static struct sockaddr_in address(const char *text, in_port_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		fail(text, EINVAL);
	return addr;
}

static void start(int fd, struct sockaddr_in to)
{
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 && errno != EINPROGRESS)
		fail("connect", errno);
}

/* Waits until the attempt is over; returns its error. */
static int outcome(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&ready, 1, PATIENCE_MS) != 1)
		fail("poll", ETIMEDOUT);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

static void talk(int fd)
{
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);
	char back[sizeof(TEXT)] = "";
	int error = outcome(fd);

	if (error)
		fail("SO_ERROR", error);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (send(fd, TEXT, strlen(TEXT), MSG_NOSIGNAL) != (ssize_t)strlen(TEXT))
		fail("send", errno);
	if (recv(fd, back, strlen(TEXT), MSG_WAITALL) < 0)
		fail("recv", errno);
	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
		fail("getpeername", errno);
	printf("%s %s:%d\n", back, inet_ntoa(peer.sin_addr), ntohs(peer.sin_port));
}

static int moved(int fd)
{
	int other = fcntl(fd, F_DUPFD, 100);

	close(fd);
	return other;
}

/* Returns in the child alone; the parent ends as the child does. */
static void leave_to_child(int fd)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		return;
	close(fd);
	waitpid(child, &status, 0);
	exit(WEXITSTATUS(status));
}

static void start_in_child(int fd, struct sockaddr_in to)
{
	pid_t child = fork();

	if (child == 0) {
		start(fd, to);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void start_again(int fd, struct sockaddr_in to, struct sockaddr_in other)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(OWN_PORT) };
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) != 0)
		fail("bind", errno);
	start(fd, to);
	if (connect(fd, &none, sizeof(none)) != 0)
		fail("AF_UNSPEC", errno);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	start(fd, other);
}

int main(int argc, char **argv)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in to;

	if (argc < 3 || fd < 0)
		return 2;
	to = address(argv[1], ECHO_PORT);
	if (strcmp(argv[2], "parent") == 0) {
		start_in_child(fd, to);
	} else if (strcmp(argv[2], "again") == 0 && argc > 3) {
		start_again(fd, to, address(argv[3], ECHO_PORT));
	} else if (strcmp(argv[2], "refused") == 0) {
		start(fd, address(argv[1], CLOSED_PORT));
		if (outcome(fd) != ECONNREFUSED)
			fail("SO_ERROR", EPROTO);
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		start(fd, to);
	} else {
		start(fd, to);
	}
	if (strcmp(argv[2], "moved") == 0)
		fd = moved(fd);
	if (strcmp(argv[2], "child") == 0)
		leave_to_child(fd);
	fflush(stdout);
	talk(fd);
	return 0;
}
