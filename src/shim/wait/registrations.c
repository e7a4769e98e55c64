/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registrations.c - reads an epoll instance's registrations from /proc
 *
 * The kernel shows an epoll instance in /proc (proc(5), /proc/pid/fdinfo), with a line for each registration:
 *
 *	tfd:        4 events: 8000001d data:        7f0000000004  pos:0 ino:1f sdev:9
 */
#include "config.h"

#include "shim/wait/watch.h"

#include "shim/system/next.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 256 /* more than three times the length of a line */

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

/* Calls @visit for each complete line in @text. Returns the number of bytes of these lines. */
static size_t lines_visit(char *text, size_t len, int epfd, registration_visitor visit, void *arg, bool *go_on)
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

void registrations_visit(int epfd, registration_visitor visit, void *arg)
{
	/* /proc/self is empty once the first thread has ended, so use thread-self (Linux 3.17) */
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
