/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - the shim's own log, silent unless CONVERT_LOG is set */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stdbool.h>

/*
 * log_open() - sets where the log goes
 * @path: a file to append to; or "-" for the standard error, but only while it is the file that it is now, and not a connection that
 * has got its number; or empty, or NULL, for no log. It is kept, not copied.
 */
void log_open(const char *path);

/* log_open_warnings() - has log_warning() write to the standard error, too. To be called after log_open(). */
void log_open_warnings(void);

/* Does log_line() write anything? Not on a stack that is too small for it (common/thread.h). */
bool log_is_on(void);

/*
 * log_line() - writes a line, with the process's name and number in front of it and a newline behind it
 * The file is opened for each line: the application could close a descriptor that is kept open (closefrom(2)), or be confused by
 * it. errno stays as it was.
 */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/* log_warning() - log_line(), and the same as a line of convertize's on the standard error after log_open_warnings() */
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);

#endif
