/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - the shim's own log, silent unless CONVERT_LOG is set */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

/*
 * @path: a file to append to; "-" for the standard error that the process begins with, and nothing that may
 * have its number later, such as a connection; empty for no log. Kept, not copied.
 */
void log_open(const char *path);

/* Has log_warning() write to standard error, too. After log_open(). */
void log_open_warnings(void);

/*
 * log_line() - one line, with the process in front and the newline added here
 * The file is opened for each line: a descriptor held open would be the
 * application's to close (closefrom(2)) or to trip over. errno is left alone.
 */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/* log_line(), and beside it on standard error as convertize's if that is asked for. */
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);

#endif
