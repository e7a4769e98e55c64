/* SPDX-License-Identifier: BSD-3-Clause */
/* notify_message.c - what convertd has to say to a service manager: assignments of sd_notify(3) (no I/O) */
#include "config.h"

#include "convertd/process/notify_message.h"

#include <string.h>

/* What a line begins with, and whether that is all of it. */
static const struct {
	const char *text;
	bool whole;
} notices[] = {
	{ "READY=1", true },
	{ "RELOADING=1", true },
	{ "STOPPING=1", true },
	{ "WATCHDOG=1", true },
	{ "STATUS=", false },
	{ "MONOTONIC_USEC=", false },
	{ "EXTEND_TIMEOUT_USEC=", false },
	{ "FDSTORE=1", true },
	{ "FDSTOREREMOVE=1", true },
	{ "FDPOLL=0", true },
	{ "FDNAME=" NOTIFY_KEPT_NAME, true },
	{ "FDNAME=" NOTIFY_RULES_NAME, true },
	{ "FDNAME=" NOTIFY_LIFELINE_NAME, true },
};

static bool line_is_right(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++) {
		size_t prefix = strlen(notices[i].text);

		if (len >= prefix && memcmp(line, notices[i].text, prefix) == 0 &&
		    (!notices[i].whole || len == prefix))
			return true;
	}
	return false;
}

bool notify_message_is_right(const char *text, size_t len)
{
	const char *end = text + len;

	if (memchr(text, '\0', len))
		return false;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		if (!line_is_right(text, (size_t)(line_end - text)))
			return false;
		text = newline ? newline + 1 : end;
	}
	return len > 0;
}
