/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_pairs.c - a relay between two socket pairs, for tests */
#include "relay_pairs.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct relay relay;
int client, server;
uint8_t *scratch;

/* TCP over loopback, since UNIX sockets can't be reset. */
static void tcp_pair(int pair[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&address, len), 0);
	pair[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
}

void setup(void)
{
	int up[2], down[2];

	tcp_pair(up);
	tcp_pair(down);
	client = up[0];
	server = down[0];
	relay_init(&relay, NULL);
	fcntl(up[1], F_SETFL, O_NONBLOCK);
	fcntl(down[1], F_SETFL, O_NONBLOCK);
	relay.side[RELAY_UPSTREAM].fd = up[1];
	relay.side[RELAY_DOWNSTREAM].fd = down[1];
	scratch = malloc(RELAY_SCRATCH_SIZE);
	ck_assert_ptr_nonnull(scratch);
}

void teardown(void)
{
	close(relay.side[RELAY_UPSTREAM].fd);
	close(relay.side[RELAY_DOWNSTREAM].fd);
	close(client);
	close(server);
	relay_fini(&relay);
	free(scratch);
}

enum relay_result run(void)
{
	for (int i = 0; i < RELAY_ENDS; i++)
		relay.side[i].readable = relay.side[i].writable = true;
	return relay_run(&relay, scratch);
}

void put(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void expect(int fd, const char *text)
{
	char got[64] = "";

	ck_assert_int_eq(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), (ssize_t)strlen(text));
	ck_assert_str_eq(got, text);
}

void expect_nothing(int fd)
{
	char byte;

	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

void reset(int *fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(*fd);
	*fd = -1;
}
