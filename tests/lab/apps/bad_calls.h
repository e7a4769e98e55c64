/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_calls.h - calls with pointers and lengths that are wrong, each in a process of its own
 *
 * ROW(call) makes one call on a new socket of the scene, in a child that may die of it, and writes a line with the
 * call as it stands in the source, what was bad, and what came of it. What is static here is set by the rows
 * for their calls, and what the calls change of it is written down, too.
 */
#ifndef APPS_BAD_CALLS_H
#define APPS_BAD_CALLS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The compiler sees that these calls are wrong. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wnonnull"
#endif

#define ROW_SECONDS 15 /* a call that takes longer hangs; on a busy machine a connection may take CONVERT_TIMEOUT, and go directly then */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	char room[256];
};

/* A place that memory may be asked for, but not in full. */
struct bad {
	const char *name;
	char *at;
};

enum { BAD_COUNT = 7, BAD_READ_ONLY = 5 };
/* The last two can be read, or written, in part: what lies at @edge() and behind it can't. */
extern struct bad bads[BAD_COUNT];

enum { LENGTH_COUNT = 8 };
extern const int lengths[LENGTH_COUNT];
extern const char *const length_names[LENGTH_COUNT];

extern union address server;
extern socklen_t server_len;

/* Makes bads[], and the memory that they are about. */
void bads_init(void);

/* The last @bytes before memory that isn't there. */
void *edge(size_t bytes);

/* A copy of @bytes there. */
void *edge_copy(const void *from, size_t bytes);

/* &out_len and &out_value, set to this. */
socklen_t *len_of(int len);
int *value_of(int value);

/* Is this the scene? */
bool scene_is(const char *name);

/* The descriptor of the scene; in the child. */
int scene_descriptor(void);

/* What the following rows are about. */
void scene_detail(const char *detail);

/* In the parent: writes down what became of the child, false. In the child: true. */
bool row_begin(const char *call, const char *what);

/* In the child: ends it. */
void row_end(long result, int error) __attribute__((noreturn));

/* A number that calls write, as they left it. */
extern socklen_t out_len;
extern int out_value;

#define ROW_TEXT(text, call, what)                                                                 \
	do {                                                                                       \
		if (row_begin(text, what)) {                                                       \
			int fd = scene_descriptor();                                               \
			long result_;                                                              \
                                                                                                   \
			(void)fd;                                                                  \
			errno = 0;                                                                 \
			result_ = (long)(call);                                                    \
			row_end(result_, errno);                                                   \
		}                                                                                  \
	} while (0)
#define ROW(call) ROW_TEXT(#call, call, "")

/* The same with bad.at each of bads[]. */
#define ROWS(call)                                                                                 \
	for (size_t i_ = 0; i_ < BAD_COUNT; i_++) {                                                \
		struct bad bad = bads[i_];                                                         \
                                                                                                   \
		ROW_TEXT(#call, call, bad.name);                                                   \
	}

/* The same without what can be read, or left out. */
#define ROWS_UNREADABLE(call)                                                                      \
	for (size_t i_ = 1; i_ < BAD_COUNT; i_++) {                                                \
		struct bad bad = bads[i_];                                                         \
                                                                                                   \
		if (i_ != BAD_READ_ONLY)                                                           \
			ROW_TEXT(#call, call, bad.name);                                           \
	}

/* The same with each length that is wrong. */
#define ROWS_LENGTH(call)                                                                          \
	for (size_t i_ = 0; i_ < LENGTH_COUNT; i_++) {                                             \
		int length = lengths[i_];                                                          \
                                                                                                   \
		ROW_TEXT(#call, call, length_names[i_]);                                           \
	}

/* The rows of each group of calls: bad_calls_*.c */
void rows_names(void);
void rows_options(void);
void rows_transfer(void);
void rows_messages(void);
void rows_waits(void);
void rows_sets(void);
void rows_starts(void);

#endif
