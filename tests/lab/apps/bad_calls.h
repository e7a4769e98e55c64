/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_calls.h - calls with wrong pointers and lengths, each in a process of its own
 *
 * ROW(call) makes one call on a new socket of the scene, in a child that may die of it, and prints a line with the call as it
 * stands in the source, the bad argument, and the result. Rows set out_len and out_value for their calls, and print them if a
 * call changes them.
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

#define ROW_SECONDS 15 /* a longer call hangs; on a busy machine a connection may take CONVERT_TIMEOUT before it goes directly */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	char room[256];
};

/* A pointer that is bad for some or all accesses. */
struct bad {
	const char *name;
	char *at;
};

enum { BAD_COUNT = 7, BAD_READ_ONLY = 5 };
/* The last two: a page that can be read but not written, and two bytes in front of memory that can't be accessed. */
extern struct bad bads[BAD_COUNT];

enum { LENGTH_COUNT = 8 };
extern const int lengths[LENGTH_COUNT];
extern const char *const length_names[LENGTH_COUNT];

extern union address server;
extern socklen_t server_len;

/* Makes bads[] and their memory. */
void bads_init(void);

/* Returns the last @bytes in front of memory that can't be accessed. */
void *edge(size_t bytes);

/* Returns a copy of @bytes there. */
void *edge_copy(const void *from, size_t bytes);

/* Set out_len or out_value, and return its address. */
socklen_t *len_of(int len);
int *value_of(int value);

/* Tells whether this is the scene. */
bool scene_is(const char *name);

/* Makes the scene's descriptor, in the child. */
int scene_descriptor(void);

/* Adds a text to the lines of the following rows. */
void scene_detail(const char *detail);

/* Returns true in the child. In the parent prints how the child ended, and returns false. */
bool row_begin(const char *call, const char *what);

/* Prints the result and ends the child. */
void row_end(long result, int error) __attribute__((noreturn));

/* Numbers that calls may change. */
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

/* The same without NULL, which may be left out, and the memory that can be read. */
#define ROWS_UNREADABLE(call)                                                                      \
	for (size_t i_ = 1; i_ < BAD_COUNT; i_++) {                                                \
		struct bad bad = bads[i_];                                                         \
                                                                                                   \
		if (i_ != BAD_READ_ONLY)                                                           \
			ROW_TEXT(#call, call, bad.name);                                           \
	}

/* The same with each wrong length. */
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
