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
 * log_open() - set the log's destination in a program that isn't ours
 * @path: a file to append to; or "-" for the standard error, but only while that descriptor refers to the present file, and not to a
 * connection that has got its number; or empty, or NULL, for no log. The caller keeps the string: it isn't copied.
 */
void log_open(const char *path);

/*
 * log_open_for_good() - set the log's destination in a process of ours
 * @path: as above, but not NULL. A file's name is absolute, since the process changes its directory. "-" is the present standard error,
 * even if the process closes its standard descriptors later. @namer: names the process that the lines of log_about() are about
 */
void log_open_for_good(const char *path, log_namer *namer);

/* The lines that follow are about the process of the thread @tid; 0: about this process. */
void log_about(pid_t tid);

/* log_open_warnings() - make log_warning() write to the standard error, too; after log_open() */
void log_open_warnings(void);

/* Does log_line() write anything? Not if the stack is too small for it (common/thread.h). */
bool log_is_on(void);

/*
 * log_line() - write a line, with the process's name and number in front of it and a newline behind it
 * Any thread and signal handler may call it. It allocates nothing, takes no lock and never waits: it drops a line that it can't write at
 * once. It opens a file for each line, as the application could close a descriptor that is kept open (closefrom(2)), or be confused by it.
 * It writes control characters as question marks, since programs choose their own names. errno stays as it was.
 */
client_log log_line;

/* log_warning() - log_line(); after log_open_warnings() also write the line to the standard error, as a message of convertize */
client_log log_warning;

#endif
