/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c - commands over a UNIX socket, one a line, each answered by one line
 *
 *     down [a-to-b|b-to-a]            ok
 *     up [a-to-b|b-to-a]              ok
 *     set [a-to-b|b-to-a] loss 5%     ok
 *     host [a-to-b|b-to-a] 10.1.0.9 25ms   ok: packets from and to this address of side A have this delay instead
 *     host [a-to-b|b-to-a] 10.1.0.9 none   ok: no longer
 *     stats                           ok a-to-b.in=12 a-to-b.in_bytes=1800 ...
 *     anything else                   error: ...
 *
 * Without a direction both are meant. Answers are short and the peer is a test that reads them: one that doesn't is
 * dropped rather than waited for, since packets come first.
 */
#include "config.h"

#include "linkem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONTROL_LINE 512

struct connection {
	int fd;
	size_t filled;
	char line[CONTROL_LINE];
};

struct control {
	int listener;
	struct lane **lanes;
	struct connection connections[CONTROL_FDS - 1];
};

static const char *const way_names[] = { [LINKEM_A_TO_B] = "a-to-b", [LINKEM_B_TO_A] = "b-to-a" };
_Static_assert(sizeof way_names / sizeof *way_names == LINKEM_WAY_COUNT, "a name for each direction");

struct control *control_create(const char *path, struct lane *lanes[LINKEM_WAY_COUNT])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct control *control;

	if (strlen(path) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(address.sun_path, path);
	control = calloc(1, sizeof *control);
	if (!control)
		return NULL;
	control->lanes = lanes;
	for (size_t i = 0; i < CONTROL_FDS - 1; i++)
		control->connections[i].fd = -1;
	unlink(path);
	control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->listener < 0 || bind(control->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
		listen(control->listener, 16) < 0) {
		int saved = errno;

		control_destroy(control);
		errno = saved;
		return NULL;
	}
	return control;
}

void control_destroy(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CONTROL_FDS - 1; i++)
		if (control->connections[i].fd >= 0)
			close(control->connections[i].fd);
	if (control->listener >= 0)
		close(control->listener);
	free(control);
}

/* Takes a direction off the front of *text; a mask of those meant. */
static unsigned ways_parse(const char **text)
{
	for (unsigned way = 0; way < LINKEM_WAY_COUNT; way++) {
		size_t size = strlen(way_names[way]);

		if (strncmp(*text, way_names[way], size) == 0 && ((*text)[size] == ' ' || (*text)[size] == '\0')) {
			*text += size;
			*text += strspn(*text, " ");
			return 1u << way;
		}
	}
	return (1u << LINKEM_WAY_COUNT) - 1;
}

static void stats_print(const struct control *control, char *answer, size_t size)
{
	size_t used = (size_t)snprintf(answer, size, "ok");

	for (unsigned way = 0; way < LINKEM_WAY_COUNT && used < size; way++) {
		const struct lane_stats *stats = lane_stats(control->lanes[way]);
		const struct {
			const char *name;
			uint64_t value;
		} rows[] = {
			{ "in", stats->in },
			{ "in_bytes", stats->in_bytes },
			{ "out", stats->out },
			{ "out_bytes", stats->out_bytes },
			{ "lost", stats->lost },
			{ "queue_drop", stats->queue_drop },
			{ "down_drop", stats->down_drop },
			{ "overflow", stats->overflow },
			{ "error", stats->error },
			{ "stripped", stats->stripped },
			{ "under_way", lane_under_way(control->lanes[way]) },
			{ "late_us", stats->out ? stats->late_ns / stats->out / 1000 : 0 },
			{ "late_max_us", stats->late_max_ns / 1000 },
		};

		for (size_t i = 0; i < sizeof rows / sizeof *rows && used < size; i++)
			used += (size_t)snprintf(answer + used, size - used, " %s.%s=%llu", way_names[way], rows[i].name,
									 (unsigned long long)rows[i].value);
	}
}

static void set_down(struct control *control, unsigned ways, bool down)
{
	for (unsigned way = 0; way < LINKEM_WAY_COUNT; way++)
		if (ways & 1u << way)
			lane_set_down(control->lanes[way], down);
}

/* False, with error[] filled in and nothing changed, where the list is wrong. */
static bool set_settings(struct control *control, unsigned ways, const char *list, char *error, size_t size)
{
	struct settings changed[LINKEM_WAY_COUNT];

	for (unsigned way = 0; way < LINKEM_WAY_COUNT; way++) {
		changed[way] = *lane_settings(control->lanes[way]);
		if ((ways & 1u << way) && !settings_set_list(&changed[way], list, error, size))
			return false;
	}
	for (unsigned way = 0; way < LINKEM_WAY_COUNT; way++)
		lane_set_settings(control->lanes[way], &changed[way]);
	return true;
}

/* Gives a host of side A a delay of its own, or takes it away: "10.1.0.9 25ms", "10.1.0.9 none". False as above. */
static bool set_host(struct control *control, unsigned ways, const char *rest, char *error, size_t size)
{
	size_t word = strcspn(rest, " ");
	const char *time = rest + word + strspn(rest + word, " ");
	bool none = strcmp(time, "none") == 0;
	char text[64] = "";
	struct host_address address;
	uint64_t delay = 0;

	if (word < sizeof text)
		memcpy(text, rest, word);
	if (!host_parse(text, &address)) {
		snprintf(error, size, "\"%.*s\" is not an IP address", (int)(word < 100 ? word : 100), rest);
		return false;
	}
	if (!none && !settings_parse_time(time, &delay, error, size))
		return false;
	for (unsigned way = 0; way < LINKEM_WAY_COUNT; way++) {
		if (!(ways & 1u << way))
			continue;
		if (none)
			delays_remove(lane_delays(control->lanes[way]), &address);
		else if (!delays_set(lane_delays(control->lanes[way]), &address, delay)) {
			snprintf(error, size, "no memory for one more host with a delay of its own");
			return false;
		}
	}
	return true;
}

/* Carries out one line; the answer comes without its newline. */
static void command_run(struct control *control, const char *line, char *answer, size_t size)
{
	size_t word = strcspn(line, " ");
	const char *rest = line + word + strspn(line + word, " ");
	unsigned ways = ways_parse(&rest);
	char error[256];

	if (word == 3 && memcmp(line, "set", 3) == 0 && *rest != '\0') {
		if (set_settings(control, ways, rest, error, sizeof error))
			snprintf(answer, size, "ok");
		else
			snprintf(answer, size, "error: %s", error);
	} else if (word == 4 && memcmp(line, "host", 4) == 0 && *rest != '\0') {
		if (set_host(control, ways, rest, error, sizeof error))
			snprintf(answer, size, "ok");
		else
			snprintf(answer, size, "error: %s", error);
	} else if (strcmp(line, "stats") == 0) {
		stats_print(control, answer, size);
	} else if (*rest == '\0' && word == 4 && memcmp(line, "down", 4) == 0) {
		set_down(control, ways, true);
		snprintf(answer, size, "ok");
	} else if (*rest == '\0' && word == 2 && memcmp(line, "up", 2) == 0) {
		set_down(control, ways, false);
		snprintf(answer, size, "ok");
	} else {
		snprintf(answer, size, "error: \"%.100s\" is not a command; there are: down, up, set, host, stats", line);
	}
}

/* Answers every whole line of the connection; false if it is to be closed. */
static bool connection_read(struct control *control, struct connection *connection)
{
	ssize_t got = recv(connection->fd, connection->line + connection->filled, CONTROL_LINE - connection->filled, 0);
	char *end;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	connection->filled += (size_t)got;
	while ((end = memchr(connection->line, '\n', connection->filled))) {
		char answer[2048];
		size_t used = (size_t)(end - connection->line) + 1, size;

		*end = '\0';
		command_run(control, connection->line, answer, sizeof answer - 1);
		size = strlen(answer);
		answer[size++] = '\n';
		if (send(connection->fd, answer, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
			return false;
		connection->filled -= used;
		memmove(connection->line, connection->line + used, connection->filled);
	}
	return connection->filled < CONTROL_LINE;
}

void control_poll(const struct control *control, struct pollfd *fds)
{
	bool room = false;

	for (size_t i = 0; i < CONTROL_FDS - 1; i++) {
		room |= control->connections[i].fd < 0;
		fds[i + 1] = (struct pollfd){ .fd = control->connections[i].fd, .events = POLLIN };
	}
	fds[0] = (struct pollfd){ .fd = room ? control->listener : -1, .events = POLLIN };
}

void control_dispatch(struct control *control, const struct pollfd *fds)
{
	for (size_t i = 0; i < CONTROL_FDS - 1; i++) {
		struct connection *connection = &control->connections[i];

		if (connection->fd >= 0 && fds[i + 1].revents && !connection_read(control, connection)) {
			close(connection->fd);
			connection->fd = -1;
			connection->filled = 0;
		}
	}
	for (size_t i = 0; i < CONTROL_FDS - 1 && fds[0].revents; i++) {
		if (control->connections[i].fd >= 0)
			continue;
		control->connections[i].fd = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		break;
	}
}
