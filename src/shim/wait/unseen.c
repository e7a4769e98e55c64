/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen.c - epoll registrations that were made past the hooks, as /proc tells of them
 *
 * libuv, since its version 1.50, and thereby Node, registers sockets through an io_uring; others
 * make system calls of their own. An epoll instance has a line in /proc for each registration:
 *
 *   tfd:        4 events: 8000001d data:        7f0000000004  pos:0 ino:1f sdev:9
 *
 * From this a registration can be taken over before the application waits in the instance. What
 * it does later goes past us as well: so before a registration is restored /proc is asked whether
 * it is still the one that we made.
 *
 * An instance may be large, and a socket may be in none (its thread uses poll()): each is looked
 * for a few times only.
 */
#include "config.h"

#include "shim/wait/unseen.h"

#include "shim/system/next.h"
#include "shim/wait/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_MAX 8
#define LINE_BYTES 256 /* more than three times the length of a line */

struct registration {
	int fd;
	struct epoll_event event;
};

/* Reads the number behind @label and moves *@text behind it. */
static bool number_read(const char **text, const char *label, int base, unsigned long long *number)
{
	const char *found = strstr(*text, label);
	char *end;

	if (!found)
		return false;
	found += strlen(label);
	*number = strtoull(found, &end, base);
	*text = end;
	return end != found;
}

static bool line_parse(const char *line, struct registration *found)
{
	unsigned long long fd, events, data;

	if (!number_read(&line, "tfd:", 10, &fd) || !number_read(&line, "events:", 16, &events) ||
	    !number_read(&line, "data:", 16, &data))
		return false;
	found->fd = (int)fd;
	found->event.events = (uint32_t)events;
	found->event.data.u64 = data;
	return true;
}

typedef bool (*visitor)(int epfd, const struct registration *found, void *arg);

/* Calls @visit for each line that is in @text as a whole; returns how much that is. */
static size_t lines_visit(char *text, size_t len, int epfd, visitor visit, void *arg, bool *go_on)
{
	size_t start = 0;
	char *end;

	while (*go_on && (end = memchr(text + start, '\n', len - start))) {
		struct registration found;

		*end = '\0';
		if (line_parse(text + start, &found))
			*go_on = visit(epfd, &found, arg);
		start = (size_t)(end - text) + 1;
	}
	return start;
}

/* Calls @visit for each registration in @epfd until it returns false. */
static void registrations_visit(int epfd, visitor visit, void *arg)
{
	/* thread-self: /proc/self is empty once the first thread has ended (Linux 3.17) */
	char path[64], text[LINE_BYTES * 8];
	size_t len = 0;
	bool go_on = true;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", epfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (go_on && (n = next.read(fd, text + len, sizeof(text) - len)) > 0) {
		size_t used;

		len += (size_t)n;
		used = lines_visit(text, len, epfd, visit, arg, &go_on);
		len = used || len < sizeof(text) ? len - used : 0;
		memmove(text, text + used, len);
	}
	next.close(fd);
}

static bool adopt_visit(int epfd, const struct registration *found, void *arg)
{
	struct conn *conn = conn_maybe(found->fd) ? conn_of(found->fd) : NULL;
	struct epoll_event event = found->event;

	(void)arg;
	if (conn && conn->unseen && watch_adopt(conn, epfd, found->fd, &event))
		return atomic_load(&conn_unseen) > 0;
	return true;
}

/* Is there one that has not been looked for often enough? */
static bool wanted_visit(struct conn *conn, void *arg)
{
	if (conn->unseen && conn->looks < LOOKS_MAX) {
		conn->looks++;
		*(bool *)arg = true;
	}
	return true;
}

void unseen_adopt(int epfd)
{
	int saved_errno = errno;
	bool wanted = false;

	conn_each_pending(wanted_visit, &wanted);
	if (wanted)
		registrations_visit(epfd, adopt_visit, NULL);
	errno = saved_errno;
}

struct mask_search {
	int fd;
	bool masked;
};

static bool mask_visit(int epfd, const struct registration *found, void *arg)
{
	struct mask_search *search = arg;

	(void)epfd;
	search->masked |= found->fd == search->fd && watch_is_mask(found->event.events);
	return !search->masked;
}

bool unseen_is_masked(int epfd, int fd)
{
	struct mask_search search = { .fd = fd };
	int saved_errno = errno;

	registrations_visit(epfd, mask_visit, &search);
	errno = saved_errno;
	return search.masked;
}
