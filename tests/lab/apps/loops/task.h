/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - the task of the clients on event loops: loop_… HOST [METHOD]
 *
 * TASK_COUNT connections to the echo server at port 7, all at once; each sends its part of a
 * pattern, then a FIN, and checks each byte that comes back until the server's FIN. After the last
 * one has ended, the client tries a port where nothing listens. It prints "20 done", then
 * "refused". METHOD is one of the library's ways to wait.
 */
#ifndef TASK_H
#define TASK_H

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASK_COUNT 20
#define TASK_SIZE 200000 /* bytes, and as many more as the conversation's number */
#define TASK_ECHO "7"
#define TASK_REFUSED "9999"

struct task_conversation {
	size_t number, received;
};

static unsigned char task_pattern[TASK_SIZE + TASK_COUNT];
static int task_left = TASK_COUNT;

static void task_die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static inline void task_init(int argc, int arguments)
{
	if (argc != 1 + arguments)
		task_die("usage", arguments == 2 ? "loop_… HOST METHOD" : "loop_… HOST");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(task_pattern); i++)
		task_pattern[i] = (unsigned char)(i % 251);
}

static inline size_t task_size(const struct task_conversation *conversation)
{
	return TASK_SIZE + conversation->number;
}

static inline void task_received(struct task_conversation *conversation, const void *data,
				 size_t len)
{
	if (conversation->received + len > task_size(conversation) ||
	    memcmp(data, task_pattern + conversation->received, len) != 0)
		task_die("received", "other bytes than were sent");
	conversation->received += len;
}

/* The server's FIN has come. Returns whether this was the last conversation. */
static inline bool task_end(const struct task_conversation *conversation)
{
	if (conversation->received != task_size(conversation))
		task_die("received", "fewer bytes than were sent");
	if (--task_left > 0)
		return false;
	printf("%d done\n", TASK_COUNT);
	return true;
}

/* How the connection that must be refused has ended. */
static inline void task_refused(bool refused, const char *error)
{
	if (!refused)
		task_die("not refused", error);
	printf("refused\n");
	exit(0);
}

/* For loops without a resolver of their own; the list lives as long as the program. */
static inline const struct addrinfo *task_resolve(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		task_die(host, gai_strerror(error));
	return found;
}

#endif
