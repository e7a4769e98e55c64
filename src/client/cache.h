/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h - what a user's processes learned of converters and servers, shared between them
 *
 * A file of fixed size in a directory of the user's (user_cache.h) holds hints. Each may be lost at any moment and may be wrong: a caller
 * does without them, and finds out by itself when one has misled it. What to do with a hint, and when to note one, is the caller's policy.
 * What is noted in one network namespace is found in that one alone.
 *
 * After cache_open_at() any thread, any signal handler and any child of fork() or vfork() may call every function: there is no lock, no
 * allocation, no global state and no cancellation point, and nothing waits for another process. errno stays as it was. A process that
 * can't change its identity has the file mapped: a look-up takes 1.5 µs (3.5 with a cookie), noting a fact 3, opening the cache 20. Any
 * other process opens the file for each call, with its identity of that moment, which takes 3 µs more.
 *
 * Whatever happens to the file meanwhile (it is cut, or overwritten, or its file system is full), no call does worse than to find
 * nothing, or something wrong within the limits stated here; above all there is no SIGBUS.
 *
 * Times are milliseconds of CLOCK_BOOTTIME, which means the same in all processes. @now is the caller's, as a rule cache_now().
 */
#ifndef CLIENT_CACHE_H
#define CLIENT_CACHE_H

#include "common/sockaddr.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CACHE_FILE "libconvert-cache-2" /* in the directory; the number is the layout's */
#define CACHE_PATH_MAX 512              /* bytes of the file's path, with the NUL, in a process that may change its identity */
#define CACHE_COOKIE_MAX 992            /* bytes that fit into a request beside a Connect TLV */
#define CACHE_KINDS_MAX 32              /* TCP option kinds of an answer to an Info TLV */
#define CACHE_LIFETIME_MAX (24 * 3600 * INT64_C(1000)) /* ms; no hint outlives this */

/* A cache. One that is { 0 } is off: nothing is ever found in it, and nothing kept. */
struct cache {
	uint8_t *file; /* the mapping; NULL: the file is opened for each call */
	char path[CACHE_PATH_MAX]; /* of the file, then; empty: it is mapped, or the cache is off */
	uid_t user; /* the effective one that opened it; it is off for any other */
	_Atomic uint64_t network; /* the network namespace that is read and written: cache_network() */
};

static inline bool cache_is_on(const struct cache *cache)
{
	return cache->file || *cache->path;
}

/*
 * cache_open_at() - have the cache in @directory, a descriptor, and make it if it isn't there
 * The caller has looked at whose the directory is, and who else may write to it (user_cache.h). @path: the directory's
 *
 * A file of ours that is damaged, or was left by another boot, is replaced by an empty one under
 * the same name; processes that have the old one go on with that, by themselves.
 *
 * Returns 0, or why the cache is off (@cache is then { 0 }): -EPERM the file is not this user's alone, or the program
 * is set-user-ID or has file capabilities; -EEXIST something that isn't a file has its name; -ENOSYS the kernel or
 * a sandbox has no process_vm_readv(2); or another -errno of open(2) or mmap(2). cache_problem()
 * has a text for each. Meant for start-up: not async-signal-safe, and a cancellation point.
 */
int cache_open_at(struct cache *cache, int directory, const char *path);

/* Leaves the file where it is. No other call may be under way. */
void cache_close(struct cache *cache);

/* Takes the mapping out of a process that isn't the user's any more who opened the cache. Any call for the cache does that, too. */
void cache_check_identity(const struct cache *cache);

/* A static text for what cache_open_at() or cache_open() returned, that completes "DIRECTORY: …". */
const char *cache_problem(int error);

/*
 * cache_network() - a number for the network namespace of the socket @fd, or -1: of the calling thread
 * SO_NETNS_COOKIE (Linux 5.14), which no other namespace has until the next boot; before, the inode of /proc/self/ns/net. 0: not known.
 */
uint64_t cache_network(int fd);

/* Milliseconds of CLOCK_BOOTTIME. */
int64_t cache_now(void);

/* The time in @seconds, for an @until. */
static inline int64_t cache_in(int64_t seconds)
{
	return cache_now() + seconds * 1000;
}

/* --- converters --- */

/* Does Multipath TCP get through to a converter? The values of this and the next two stand in the file. */
enum cache_mptcp {
	CACHE_MPTCP_UNKNOWN,
	CACHE_MPTCP_HOLDS, /* a connection was Multipath TCP at the end of its handshake */
	CACHE_MPTCP_LOST,  /* a connection fell back to TCP */
	CACHE_MPTCP_DOUBTED, /* one did where others had not, which may have been a lost packet's doing */
	CACHE_MPTCP_COUNT
};

/* How a path to a converter was last. */
enum cache_path {
	CACHE_PATH_UNKNOWN,
	CACHE_PATH_WORKS,
	CACHE_PATH_DATALESS, /* it works, but takes no data in SYNs */
	CACHE_PATH_LOSES,    /* of several SYNs some were answered */
	CACHE_PATH_SILENT,   /* none was */
	CACHE_PATH_COUNT
};

/* What may be known of a converter: bits, each a record of its own with its own end. */
enum cache_fact {
	CACHE_REST = 1u << 0,    /* it isn't to be asked */
	CACHE_INFO = 1u << 1,    /* what it answered to an Info TLV (Section 6.2.3) */
	CACHE_COOKIE = 1u << 2,  /* it gave a cookie (Section 6.2.7) */
	CACHE_MPTCP = 1u << 3,   /* whether Multipath TCP gets through to it */
	CACHE_SILENCE = 1u << 4, /* it takes connections, and has never answered a request */
	CACHE_PATH = 1u << 5,    /* how the path to it is */
};
#define CACHE_FACTS_ALL (CACHE_REST | CACHE_INFO | CACHE_COOKIE | CACHE_MPTCP | CACHE_SILENCE | CACHE_PATH)

/*
 * The facts. @learned is when the fact was noted, and set by the cache. @until is when it ends to be known: one that lies further ahead
 * than CACHE_LIFETIME_MAX is brought down to that, one that has passed makes the cache forget the fact. What follows these two is as in the
 * file (union cache_value of cache_file.h), without padding; @zero is 0.
 */
struct cache_converter {
	unsigned int known; /* bits of enum cache_fact; what isn't known is zero */
	struct {
		int64_t learned, until;
	} rest;
	struct {
		int64_t learned, until;
		uint32_t flags;                 /* the caller's, for what private-use TLVs said */
		uint8_t count;                  /* of kinds; 0: it supports none */
		uint8_t kinds[CACHE_KINDS_MAX]; /* of Section 6.2.4, none of them 0 */
		uint8_t zero[3];
	} info;
	struct {
		int64_t learned, until;
		uint16_t len; /* bytes, 1 to CACHE_COOKIE_MAX */
		uint8_t bytes[CACHE_COOKIE_MAX];
		uint8_t zero[6];
	} cookie;
	struct {
		int64_t learned, until;
		enum cache_mptcp verdict;
		uint32_t zero;
	} mptcp;
	struct {
		int64_t learned, until;
		uint64_t destination;  /* of the last silence: a hash of the caller's for its server */
		uint32_t destinations; /* 1 or more, as the caller counts them */
		uint32_t zero;
	} silence;
	struct {
		int64_t learned, until;
		int64_t asked;         /* when it was last asked whether it works again, or has lost data, as cache_now() */
		enum cache_path state; /* not UNKNOWN */
		uint16_t rtt_ms;       /* 0: not known */
		uint8_t doubts;        /* the caller's count of answers that it owes, or of data that it has lost */
		uint8_t zero;
	} path;
};

/*
 * cache_converter_get() - what is known of the converter at @address
 * @address: with its port; an IPv4 address equals its v4-mapped form, the scope doesn't count
 * @path: fingerprint of the client's way to it, for CACHE_PATH alone; 0 where the
 *        caller doesn't tell paths apart, or for the usual one. Only what was noted with the same value is found.
 * @facts: bits of enum cache_fact that are wanted; the others are not looked for
 * @out: all of it is written
 * Returns @out->known.
 */
unsigned int cache_converter_get(const struct cache *cache, const union sockaddr_ip *address,
				 uint64_t path, unsigned int facts, int64_t now,
				 struct cache_converter *out);

/*
 * cache_converter_update() - note, or forget, the facts @facts of @in
 * The other facts are left as they are, also if another process changes them at the same time;
 * of two that change the same fact one wins. @in->known and each @learned are not looked at.
 *
 * Returns 0; -ENOENT if the cache is off; -EINVAL with nothing done for a value out of the
 * range given above, or an address of another family; -EFAULT if the file has been cut or its file
 * system is full, or another -errno of process_vm_writev(2) or pwrite(2).
 */
int cache_converter_update(const struct cache *cache, const union sockaddr_ip *address,
			   uint64_t path, unsigned int facts, int64_t now,
			   const struct cache_converter *in);

/* --- servers --- */

enum cache_server_verdict {
	CACHE_SERVER_UNKNOWN,
	CACHE_SERVER_MPTCP,     /* it speaks MPTCP: it can be reached directly (Section 5.1) */
	CACHE_SERVER_NO_BYPASS, /* that was tried, and MPTCP or the connection failed */
	CACHE_SERVER_PLAIN,     /* it doesn't speak MPTCP */
	CACHE_SERVER_VERDICT_COUNT
};

struct cache_server {
	enum cache_server_verdict verdict;
	int64_t learned, until; /* as in struct cache_converter */
};

/*
 * cache_server_get() - what is known of the server at @address, or zero (UNKNOWN)
 * @source: fingerprint of the converter that said so; only what was noted with the same value is found
 * Returns @out->verdict.
 */
enum cache_server_verdict cache_server_get(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, int64_t now,
					   struct cache_server *out);

/*
 * cache_server_put() - note @verdict until @until; the last one put counts
 * UNKNOWN, or an @until that has passed, makes the cache forget the server. Returns as
 * cache_converter_update().
 */
int cache_server_put(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, enum cache_server_verdict verdict,
		     int64_t now, int64_t until);

#endif
