/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_probe.c - does to a connection what goes past the hooks, or comes at a bad moment
 *
 *   hook_probe CASE ADDRESS PORT
 *
 * CASE is one of the names in the table at the end. Most of the transcripts must be the same with the shim and without it.
 */
#include "config.h"

#include "say.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

static struct sockaddr_in server = { .sin_family = AF_INET };

static int tcp(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	must(fd, "socket");
	return fd;
}

static int connected(void)
{
	int fd = tcp(SOCK_CLOEXEC);

	must(connect(fd, (struct sockaddr *)&server, sizeof(server)), "connect");
	return fd;
}

static void say_line(FILE *stream)
{
	char line[256];

	say("line %s", fgets(line, sizeof(line), stream) ? line : "none\n");
}

/* --- the C library's own calls, which no hook sees --- */

static void stdio(void)
{
	FILE *stream = fdopen(connected(), "r+");

	say_line(stream);
	fputs("helo\n", stream);
	fflush(stream);
	say_line(stream);
	SAY(fclose(stream));
}

/* The application speaks first, and all it does is by stdio. */
static void stdio_speaks_first(void)
{
	FILE *stream = fdopen(connected(), "r+");

	fputs("hello\n", stream);
	fflush(stream);
	say_line(stream);
	SAY(fclose(stream));
}

static void dprintf_speaks_first(void)
{
	char answer[16] = "";
	int fd = connected();

	SAY(dprintf(fd, "hello\n"));
	SAY(recv(fd, answer, 6, MSG_WAITALL));
	say("answer %s", answer);
	SAY(close(fd));
}

/* --- ways to leave a connection, which the bytes must survive --- */

static void fclose_at_once(void)
{
	FILE *stream = fdopen(connected(), "w");

	fputs("hello", stream);
	SAY(fclose(stream));
}

static void close_at_once(void)
{
	int fd = connected();

	SAY(write(fd, "hello", 5));
	SAY(close(fd));
}

static void exit_at_once(void)
{
	SAY(write(connected(), "hello", 5));
	fflush(stdout);
	_exit(0);
}

static void exec_at_once(void)
{
	SAY(write(connected(), "hello", 5));
	fflush(stdout);
	execl("/bin/true", "true", NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "stdio", stdio },
	{ "stdio-first", stdio_speaks_first },
	{ "dprintf-first", dprintf_speaks_first },
	{ "fclose", fclose_at_once },
	{ "close", close_at_once },
	{ "exit", exit_at_once },
	{ "exec", exec_at_once },
};

int main(int argc, char **argv)
{
	if (argc != 4 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[3]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		scene(argv[1]);
		cases[i].run();
		return 0;
	}
	return 2;
}
