/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - the shim's own log, silent unless CONVERT_LOG is set */
#include "config.h"

#include "shim/log.h"

#include "shim/next.h"
#include "shim/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static const char *log_path;
static struct stat first_stderr;

static bool is_stderr(void)
{
	return strcmp(log_path, "-") == 0;
}

void log_open(const char *path)
{
	log_path = path;
	if (path && is_stderr() && fstat(STDERR_FILENO, &first_stderr) != 0)
		log_path = NULL;
}

/* Still the file that it was when the process began? */
static bool stderr_is_first(void)
{
	struct stat now;

	return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.st_dev &&
	       now.st_ino == first_stderr.st_ino;
}

/*
 * One write, so that lines of several processes don't mix; a lost line is no reason to fail, to wait,
 * or to end by a signal. Signals are blocked.
 */
static void line_write(int fd, const char *line, size_t len)
{
	static const struct timespec at_once;
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	sigset_t pending, sigpipe;

	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigpending(&pending);
	if (next_poll_now(&poller, 1) == 1 && next.write(fd, line, len) < 0 && errno == EPIPE &&
	    sigismember(&pending, SIGPIPE) == 0)
		sigtimedwait(&sigpipe, NULL, &at_once);
}

static void line_append(const char *line, size_t len)
{
	int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	if (fd < 0)
		return;
	line_write(fd, line, len);
	next_close_now(fd);
}

static size_t line_format(char line[LINE_MAX_BYTES], const char *format, va_list args)
{
	int used = snprintf(line, LINE_MAX_BYTES - 1, "libconvert: %s[%d]: ",
			    program_invocation_short_name, (int)getpid());
	int more;

	if (used < 0 || used > LINE_MAX_BYTES / 2)
		used = 0;
	more = vsnprintf(line + used, (size_t)(LINE_MAX_BYTES - 1 - used), format, args);
	used = more < 0 || more > LINE_MAX_BYTES - 2 - used ? LINE_MAX_BYTES - 2 : used + more;
	line[used] = '\n';
	return (size_t)used + 1;
}

void log_line(const char *format, ...)
{
	int saved_errno = errno;
	char line[LINE_MAX_BYTES];
	va_list args;
	size_t len;
	struct quiet quiet;

	if (!log_path || !*log_path)
		return;
	/* open() and the rest are points of cancellation, which the caller may be none of */
	quiet_all(&quiet);
	va_start(args, format);
	len = line_format(line, format, args);
	va_end(args);
	if (!is_stderr())
		line_append(line, len);
	else if (stderr_is_first())
		line_write(STDERR_FILENO, line, len);
	errno = saved_errno;
	quiet_end(&quiet);
}
