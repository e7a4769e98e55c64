/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - the log on standard error
 *
 * The problem: a reader of standard error that has stopped reading (a pager, a full disk behind a pipe) must not stop
 * the sessions. So a line waits for room for PATIENCE_MS at most, and further lines don't wait until there is room
 * again (write_line(), "stuck"). lost_lines counts the lines without room, and a warning with their number follows
 * the next line that can be written. One mutex keeps lines of different threads apart; nothing is allocated that
 * outlives a line.
 */
#include "config.h"

#include "daemon/log.h"

#include "common/clock.h"
#include "common/quote.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 8192

/* How long a line waits for the reader of standard error, in milliseconds. */
#define PATIENCE_MS 20

static const struct {
	const char *name;
	int priority; /* of syslog(3), which the journal uses as well */
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", LOG_ERR },
	[LOG_LEVEL_WARNING] = { "warning", LOG_WARNING },
	[LOG_LEVEL_INFO] = { "info", LOG_INFO },
	[LOG_LEVEL_DEBUG] = { "debug", LOG_DEBUG },
};
static_assert(sizeof(levels) / sizeof(levels[0]) == LOG_LEVEL_COUNT, "words for each level");

static _Atomic int max_level = LOG_LEVEL_INFO;
static _Atomic int line_format = LOG_FORMAT_TEXT;
static _Atomic bool to_journal;
static _Atomic unsigned lost_lines;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
	atomic_store_explicit(&line_format, format, memory_order_relaxed);
}

static const char *program = "convertd"; /* in front of each line */

/*
 * JOURNAL_STREAM holds "DEVICE:INODE" of the journal's socket. They are compared, because standard error may have
 * been redirected since the service manager set the variable.
 */
void log_start(const char *name)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat error;
	char own[64];

	program = name;
	if (!stream || fstat(STDERR_FILENO, &error) < 0)
		return;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)error.st_dev, (uintmax_t)error.st_ino);
	to_journal = strcmp(stream, own) == 0;
}

bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

/*
 * Writes a line unless that would block: the reader may be late by PATIENCE_MS once, and then lines that would
 * have to wait are lost. The lock is held from poll() to write(), so that no other thread fills the room that
 * poll() has found. (A pipe is ready when a page fits in; lines are shorter, except for some of the main
 * thread's with lists of addresses.) Returns false if the line was lost; a failed write() counts as written.
 */
static bool write_line(const char *line, size_t len)
{
	static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
	static bool stuck;
	struct pollfd error = { .fd = STDERR_FILENO, .events = POLLOUT };
	bool ready;

	pthread_mutex_lock(&writing);
	ready = poll(&error, 1, stuck ? 0 : PATIENCE_MS) != 0;
	stuck = !ready;
	if (ready && write(STDERR_FILENO, line, len) < 0)
		(void)0;
	pthread_mutex_unlock(&writing);
	return ready;
}

static bool write_text(enum log_level level, const char *text)
{
	char line[MESSAGE_MAX + 64], priority[8] = "";
	int n;

	if (to_journal)
		snprintf(priority, sizeof(priority), "<%d>", levels[level].priority);
	n = snprintf(line, sizeof(line), "%s%s: %s: %.*s\n", priority, program, levels[level].name,
		     MESSAGE_MAX, text);
	return write_line(line, (size_t)n);
}

/* Writes the time as RFC 3339 has it, in UTC, with milliseconds. */
static void json_time(FILE *out)
{
	struct timespec now;
	struct tm utc;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	fprintf(out, "\"%s.%03ldZ\"", text, now.tv_nsec / 1000000);
}

static bool write_json(enum log_level level, const char *text,
		       void (*write)(FILE *out, const void *arg), const void *arg)
{
	char *line = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&line, &len);
	bool written;

	if (!out)
		return false;
	if (to_journal)
		fprintf(out, "<%d>", levels[level].priority);
	fputs("{\"time\":", out);
	json_time(out);
	fprintf(out, ",\"level\":\"%s\",\"message\":", levels[level].name);
	json_string(out, text);
	if (write)
		write(out, arg);
	fputs("}\n", out);
	written = fclose(out) == 0 && write_line(line, len);
	free(line);
	return written;
}

/* Returns whether the line was written. */
static bool put_line(enum log_level level, const char *text,
		     void (*write)(FILE *out, const void *arg), const void *arg)
{
	if (atomic_load_explicit(&line_format, memory_order_relaxed) == LOG_FORMAT_JSON)
		return write_json(level, text, write, arg);
	return write_text(level, text);
}

static void tell_lost_lines(void)
{
	unsigned lost = atomic_exchange_explicit(&lost_lines, 0, memory_order_relaxed);
	char text[96];

	snprintf(text, sizeof(text), "%u lines are missing here: nobody read standard error", lost);
	if (lost && !put_line(LOG_LEVEL_WARNING, text, NULL, NULL))
		atomic_fetch_add_explicit(&lost_lines, lost, memory_order_relaxed);
}

void log_fields(enum log_level level, const char *text,
		void (*write)(FILE *out, const void *arg), const void *arg)
{
	int saved_errno = errno;

	if (!log_enabled(level))
		return;
	if (!put_line(level, text, write, arg))
		atomic_fetch_add_explicit(&lost_lines, 1, memory_order_relaxed);
	else if (atomic_load_explicit(&lost_lines, memory_order_relaxed))
		tell_lost_lines();
	errno = saved_errno;
}

void log_printf(enum log_level level, const char *format, ...)
{
	char text[MESSAGE_MAX];
	int saved_errno = errno;
	va_list args;

	if (!log_enabled(level) && level > LOG_LEVEL_WARNING)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (level <= LOG_LEVEL_WARNING)
		notices_add(text);
	log_fields(level, text, NULL, NULL);
	errno = saved_errno;
}

/* This is the generic cell rate algorithm (ITU-T I.371): a token bucket in one word. */
bool log_limit_take(struct log_limit *limit, uint64_t interval_us, unsigned burst, uint64_t now_us)
{
	uint64_t next = atomic_load_explicit(&limit->next_us, memory_order_relaxed), start;

	do {
		start = next > now_us ? next : now_us;
		if (start - now_us > interval_us * (burst - 1)) {
			atomic_fetch_add_explicit(&limit->left_out, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&limit->next_us, &next, start + interval_us,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool log_limit_pass(struct log_limit *limit, unsigned *suppressed)
{
	if (!log_limit_take(limit, LOG_LIMIT_MS * 1000ULL, 1, clock_now_us()))
		return false;
	*suppressed = (unsigned)atomic_exchange_explicit(&limit->left_out, 0, memory_order_relaxed);
	return true;
}

void log_shortage(int error, const char *what)
{
	static struct log_limit limit;
	unsigned suppressed;

	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	if (log_limit_pass(&limit, &suppressed))
		log_warning("%s: %s (%u times more since the last such line); %s", what, strerror(error), suppressed,
			    error == EMFILE || error == ENFILE ?
				    "raise the limit of open files (LimitNOFILE=, ulimit -Hn; for all processes fs.file-max)" :
				    "free memory, or raise this process's limit of it");
}

/*
 * ----- the latest warnings and errors, kept for the status page -----
 *
 * The page shows present problems to readers without the log. Equal texts share one entry with a count, so that one
 * warning that comes each second doesn't displace the others; the entries stand in the order of their last
 * occurrence, and the last of NOTICES_MAX gives way to a new one. A reload empties the table.
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct notice kept[NOTICES_MAX]; /* the latest first */
static size_t kept_count;

/* Finds the index of @text, or makes that of a free or the oldest entry empty for it. The caller holds the lock. */
static size_t find_place(const char *text)
{
	for (size_t i = 0; i < kept_count; i++)
		if (strncmp(kept[i].text, text, NOTICE_TEXT_MAX - 1) == 0)
			return i;
	if (kept_count < NOTICES_MAX)
		kept_count++;
	memset(&kept[kept_count - 1], 0, sizeof(kept[0]));
	return kept_count - 1;
}

void notices_add(const char *text)
{
	struct notice notice;
	size_t place;

	pthread_mutex_lock(&lock);
	place = find_place(text);
	notice = kept[place];
	snprintf(notice.text, sizeof(notice.text), "%s", text);
	notice.last = time(NULL);
	notice.told++;
	memmove(&kept[1], &kept[0], place * sizeof(kept[0]));
	kept[0] = notice;
	pthread_mutex_unlock(&lock);
}

void notices_forget(void)
{
	pthread_mutex_lock(&lock);
	kept_count = 0;
	pthread_mutex_unlock(&lock);
}

size_t notices_copy(struct notice notices[static NOTICES_MAX])
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = kept_count;
	memcpy(notices, kept, count * sizeof(kept[0]));
	pthread_mutex_unlock(&lock);
	return count;
}
