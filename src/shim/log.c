/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - the shim's own log, silent unless CONVERT_LOG is set */
#include "config.h"

#include "shim/log.h"

#include "shim/next.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static const char *log_path;

void log_open(const char *path)
{
	log_path = path;
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
	int fd = STDERR_FILENO, cancel_state;

	if (!log_path || !*log_path)
		return;
	/* open() and the rest are points of cancellation, which the caller may be none of */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	va_start(args, format);
	len = line_format(line, format, args);
	va_end(args);
	if (strcmp(log_path, "-") != 0)
		fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			  0600);
	/* One write, so that lines of several processes don't mix; a lost line is no reason to fail. */
	if (fd >= 0 && next.write(fd, line, len) < 0)
		errno = 0;
	if (fd >= 0 && fd != STDERR_FILENO)
		next.close(fd);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}
