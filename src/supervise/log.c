/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - a line for each connection of the supervised programs, as the preloaded library writes them */
#include "config.h"

#include "supervise/log.h"

#include "supervise/tracee.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static const char *log_path = "";
static int log_stderr = -1;
static pid_t about;

void log_open(const char *path)
{
	static char absolute[PATH_MAX];

	log_path = path;
	if (*path && *path != '/' && strcmp(path, "-") != 0 && getcwd(absolute, sizeof(absolute))) {
		snprintf(absolute + strlen(absolute), sizeof(absolute) - strlen(absolute), "/%s", path);
		log_path = absolute;
	}
	if (strcmp(path, "-") == 0)
		log_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void log_about(pid_t tid)
{
	about = tid;
}

/*
 * Writes a line by one call, so that lines of several processes don't mix. It never waits, since all programs would: a line for which
 * there is no room, or no reader, is lost. (Standard error is the programs', too, and can't be made non-blocking.)
 */
static void line_write(const char *line, size_t len)
{
	struct pollfd log = { .fd = log_stderr, .events = POLLOUT };

	if (log.fd < 0)
		log.fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (log.fd < 0)
		return;
	if (poll(&log, 1, 0) == 1 && write(log.fd, line, len) < 0)
		(void)0;
	if (log.fd != log_stderr)
		close(log.fd);
}

void log_line(const char *format, ...)
{
	char line[LINE_MAX_BYTES], name[TRACEE_NAME_MAX];
	va_list args;
	int used, more;
	pid_t process;

	if (!*log_path)
		return;
	if (!about)
		about = getpid();
	process = tracee_name(about, name);
	used = snprintf(line, sizeof(line) - 1, "libconvert: %s[%d]: ", name, (int)process);
	va_start(args, format);
	more = vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, args);
	va_end(args);
	used = more < 0 || used + more > LINE_MAX_BYTES - 2 ? LINE_MAX_BYTES - 2 : used + more;
	line[used] = '\n';
	line_write(line, (size_t)used + 1);
}
