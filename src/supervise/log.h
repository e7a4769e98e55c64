/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - a line for each connection of the supervised programs, as the preloaded library writes them */
#ifndef SUPERVISE_LOG_H
#define SUPERVISE_LOG_H

#include <sys/types.h>

/* @path: CONVERT_LOG: a file, "-" for standard error, or empty for none. Called before the standard descriptors are given up. */
void log_open(const char *path);

/* The lines that follow are about the process of the thread @tid; 0: about this process. */
void log_about(pid_t tid);

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
