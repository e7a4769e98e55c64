/* SPDX-License-Identifier: BSD-3-Clause */
/* client_log.h - the log of a client's front end, silent unless CONVERT_LOG is set */
#ifndef CLIENT_CLIENT_LOG_H
#define CLIENT_CLIENT_LOG_H

#include <stdbool.h>
#include <sys/types.h>

#define LOG_NAME_MAX 256 /* bytes of a process's name, with the NUL */

/* A function that writes a line to a log. */
typedef void client_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the name of the process of the thread @tid. Returns the process's number. */
typedef pid_t log_namer(pid_t tid, char name[static LOG_NAME_MAX]);

/*
 * log_open() - set where the log of a program that isn't ours goes
 * @path: a file to append to; or "-" for the standard error, but only while it is the file that it is now, and not a connection that
 * has got its number; or empty, or NULL, for no log. It is kept, not copied.
 */
void log_open(const char *path);

/*
 * log_open_for_good() - set where the log of a process of ours goes
 * Keeps what @path, as above, names now, also where the process gives up its directory and its standard descriptors. @namer: says which
 * process the lines of log_about() are about
 */
void log_open_for_good(const char *path, log_namer *namer);

/* The lines that follow are about the process of the thread @tid; 0: about this process. */
void log_about(pid_t tid);

/* log_open_warnings() - have log_warning() write to the standard error, too; after log_open() */
void log_open_warnings(void);

/* Does log_line() write anything? Not on a stack that is too small for it (common/thread.h). */
bool log_is_on(void);

/*
 * log_line() - write a line, with the process's name and number in front of it and a newline behind it
 * From any thread and signal handler. It allocates nothing, takes no lock and never waits: a line that can't be written at once is lost.
 * A file is opened for each line: the application could close a descriptor that is kept open (closefrom(2)), or be confused by
 * it. A control character in the line becomes a question mark, since programs choose their own names. errno stays as it was.
 */
client_log log_line;

/* log_warning() - log_line(), and the same as a line of convertize's on the standard error after log_open_warnings() */
client_log log_warning;

#endif
