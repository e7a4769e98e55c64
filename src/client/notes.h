/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notes.h - notes about connections, for "convertize status"
 *
 * The kernel knows a socket's peer, bytes and process. It doesn't know the server behind a converter, nor why a connection goes directly.
 * So a front end leaves a note in its user's cache: a record named by the socket's SO_COOKIE, which sock_diag(7) shows, too. Nobody
 * removes a note when its connection ends, since no hook sees the last close(); the table has room for the last 2048 of a user. A daemon
 * that makes connections for others adds its client's address.
 */
#ifndef CLIENT_NOTES_H
#define CLIENT_NOTES_H

#include "client/cache_file.h"
#include "common/sockaddr.h"

#include <stdint.h>

/* The file contains these bits. */
enum note_flag {
	NOTE_DIRECT = 1u << 0,     /* the connection goes to the server itself, for the reason */
	NOTE_SYN_DATA = 1u << 1,   /* its SYN carried the request */
	NOTE_EARLY_DATA = 1u << 2, /* the program's first bytes followed the request */
	NOTE_SILENT = 1u << 3,     /* the request was silent, and no response came */
	NOTE_PLACED = 1u << 4,     /* the connection began on another network than the kernel's choice */
	NOTE_ORDERED = 1u << 6,    /* … as CONVERT_PATHS or a quota orders */
	NOTE_MOVED = 1u << 5,      /* the connection began anew on another network, since its first one was silent or refused it */
};

struct note {
	uint64_t cookie;            /* SO_COOKIE; 0: unknown, and nothing is noted */
	union sockaddr_ip server;
	union sockaddr_ip converter; /* AF_UNSPEC: none */
	union sockaddr_ip client;    /* of a daemon's connection; AF_UNSPEC: a program of this host */
	unsigned int flags;          /* of enum note_flag */
	uint32_t connect_ms;         /* from the call until the server had answered; 0: unknown */
	char reason[CACHE_REASON_MAX]; /* of NOTE_DIRECT; else empty */
	int64_t noted;               /* milliseconds of CLOCK_BOOTTIME; note_put() sets it in the file */
};

/* Leaves the note in @cache. It costs two copies of memory by the kernel, some 3 µs. Works in hooks, and keeps errno. */
void note_put(const struct cache *cache, const struct note *note);

/* Notes in the user's cache, if user_cache_open() was called before, that a socket goes directly. @reason: cut if it is too long */
void note_direct(uint64_t cookie, const union sockaddr_ip *server, const char *reason);

/*
 * notes_read() - read all notes that a user's programs have left in this network namespace
 * @path: of the cache's file; @network: of cache_network(); @out: room for @max notes; @owner: set to the file's owner. The caller
 * believes a note only about sockets of @owner, unless root wrote it. Returns the number of notes, or -errno if the file can't be read.
 */
int notes_read(const char *path, uint64_t network, struct note *out, size_t max, uid_t *owner);

#endif
