/* SPDX-License-Identifier: BSD-3-Clause */
/* client_log.c - the log of a client's front end, silent unless CONVERT_LOG is set */
#include "config.h"

#include "client/client_log.h"

#include "common/file_limit.h"
#include "common/rawcall.h"
#include "common/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

static const char *log_path;
static struct stat first_stderr;
static bool has_warnings;
static int kept_stderr = -1; /* a duplicate, in a process of ours */
static log_namer *name_of;
static pid_t about;

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

void log_open_for_good(const char *path, log_namer *namer)
{
	name_of = namer;
	log_path = path;
	if (is_stderr())
		kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void log_about(pid_t tid)
{
	about = tid;
}

void log_open_warnings(void)
{
	has_warnings = fstat(STDERR_FILENO, &first_stderr) == 0;
}

/* Is the standard error still the file that it was when the process began? */
static bool stderr_is_first(void)
{
	struct stat now;

	return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.st_dev &&
	       now.st_ino == first_stderr.st_ino;
}

/*
 * Writes a line by one system call, past the shim's hooks, so that lines of several processes don't mix. The caller has blocked signals; we
 * consume a SIGPIPE that the write has caused.
 */
static void line_write(int fd, const char *line, size_t len)
{
	static const struct timespec at_once;
	struct timespec no_time = { 0 };
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	sigset_t pending, sigpipe;
	struct stat file;

	if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && !file_limit_allows((uint64_t)file.st_size + len))
		return;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigpending(&pending);
	if (RAWCALL(SYS_WITH_TIME(ppoll), &poller, 1, &no_time, NULL, _NSIG / 8) == 1 && RAWCALL(SYS_write, fd, line, len) < 0 &&
	    errno == EPIPE && sigismember(&pending, SIGPIPE) == 0)
		sigtimedwait(&sigpipe, NULL, &at_once);
}

static void line_append(const char *line, size_t len)
{
	/* ThreadSanitizer follows the descriptors of open() but not RAWCALL's close: it would report a race with the number's next user. */
	int fd = openat(AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

	if (fd < 0)
		return;
	line_write(fd, line, len);
	RAWCALL(SYS_close, fd);
}

/* Formats a line that begins with @who and ends with a newline. Cuts it if it is too long. Returns its length. */
__attribute__((format(printf, 3, 0)))
static size_t line_format(char line[LINE_MAX_BYTES], const char *who, const char *format, va_list args)
{
	int used = snprintf(line, LINE_MAX_BYTES - 1, "%s", who);
	int more;

	more = vsnprintf(line + used, (size_t)(LINE_MAX_BYTES - 1 - used), format, args);
	used = more < 0 || more > LINE_MAX_BYTES - 2 - used ? LINE_MAX_BYTES - 2 : used + more;
	for (int i = 0; i < used; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == '\x7f')
			line[i] = '?';
	line[used] = '\n';
	return (size_t)used + 1;
}

/* Writes to the log. The caller has called quiet_all(), since open() and others are cancellation points, and hooks must not be. */
__attribute__((format(printf, 1, 0)))
static void line_log(const char *format, va_list args)
{
	char name[LOG_NAME_MAX], who[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES];
	pid_t process = getpid();
	size_t len;

	if (!log_path || !*log_path)
		return;
	if (name_of)
		process = name_of(about ? about : process, name);
	snprintf(who, sizeof(who), "libconvert: %.200s[%d]: ", name_of ? name : program_invocation_short_name, (int)process);
	len = line_format(line, who, format, args);
	if (!is_stderr())
		line_append(line, len);
	else if (kept_stderr >= 0 || stderr_is_first())
		line_write(kept_stderr >= 0 ? kept_stderr : STDERR_FILENO, line, len);
}

bool log_is_on(void)
{
	return log_path && *log_path && !stack_is_small();
}

void log_line(const char *format, ...)
{
	int saved_errno = errno;
	struct quiet quiet;
	va_list args;

	if (!log_is_on())
		return;
	quiet_all(&quiet);
	va_start(args, format);
	line_log(format, args);
	va_end(args);
	errno = saved_errno;
	quiet_end(&quiet);
}

void log_warning(const char *format, ...)
{
	int saved_errno = errno;
	char line[LINE_MAX_BYTES];
	struct quiet quiet;
	va_list args;
	size_t len;

	quiet_all(&quiet);
	va_start(args, format);
	line_log(format, args);
	va_end(args);
	if (has_warnings && !(log_path && is_stderr()) && stderr_is_first()) {
		va_start(args, format);
		len = line_format(line, "convertize: ", format, args);
		va_end(args);
		line_write(STDERR_FILENO, line, len);
	}
	errno = saved_errno;
	quiet_end(&quiet);
}
