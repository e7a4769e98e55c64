/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h - what a user's processes learned of converters and servers, shared between them
 *
 * A file of fixed size in a directory of the user's (user_cache.h), mapped by each process that opens it. It holds
 * hints: each may be lost at any moment and may be wrong, so that a caller must do without them and must find out by itself
 * when one has misled it. What to do with a hint, and when to note one, is the caller's policy.
 *
 * After cache_open_at() every function may be called from any thread and any signal handler, and in
 * a child of fork() or vfork(): there is no lock, no allocation, no descriptor, no global state and
 * no cancellation point. Nothing waits for another process. A look-up takes 1.5 µs (3.5 with a cookie), noting a fact 3,
 * opening the cache 20. errno is left alone.
 *
 * Whatever happens to the file while it is mapped (it is cut, or overwritten, or its file system
 * is full), no call does worse than to find nothing, or something wrong within the limits stated
 * here; above all there is no SIGBUS.
 *
 * Times are milliseconds of CLOCK_BOOTTIME, which means the same in all processes. @now is the
 * caller's, as a rule cache_now().
 */
#ifndef CLIENT_CACHE_H
#define CLIENT_CACHE_H

#include "client/cache_types.h"
#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cache. One that is { 0 } is off: nothing is ever found in it, and nothing kept. */
struct cache {
	uint8_t *file; /* NULL: off */
};

/*
 * cache_open_at() - map the cache in @directory, a descriptor, and make it if it isn't there
 * Whose the directory is, and who else may write to it, the caller has looked at (user_cache.h).
 *
 * A file of ours that is damaged, or was left by another boot, is replaced by an empty one under
 * the same name; processes that have the old one mapped go on with that, by themselves.
 *
 * Returns 0, or why the cache is off (@cache is then { 0 }): -EPERM the file is not this user's alone, or the process
 * is privileged (setuid, capabilities); -EEXIST something that isn't a file has its name; -ENOSYS the kernel or
 * a sandbox has no process_vm_readv(2); or another -errno of open(2) or mmap(2). cache_problem()
 * has a text for each. Meant for start-up: not async-signal-safe, and a cancellation point.
 */
int cache_open_at(struct cache *cache, int directory);

/* Unmaps it; the file stays. No other call may be under way. */
void cache_close(struct cache *cache);

/* A static text for what cache_open_at() or cache_open() returned, that completes "DIRECTORY: …". */
const char *cache_problem(int error);

/* Milliseconds of CLOCK_BOOTTIME. */
int64_t cache_now(void);

/* The time in @seconds, for an @until. */
static inline int64_t cache_in(int64_t seconds)
{
	return cache_now() + seconds * 1000;
}

/* --- converters --------------------------------------------------------------------------- */

/* What may be known of a converter: bits, each a record of its own with its own end. */
enum cache_fact {
	CACHE_REST = 1u << 0,    /* it isn't to be asked */
	CACHE_INFO = 1u << 1,    /* what it answered to an Info TLV (Section 6.2.3) */
	CACHE_COOKIE = 1u << 2,  /* it gave a cookie (Section 6.2.7) */
	CACHE_MPTCP = 1u << 3,   /* whether Multipath TCP gets through to it */
	CACHE_SILENCE = 1u << 4, /* it takes connections, and has never answered a request */
	CACHE_PATH = 1u << 5,    /* how the path to it is */
};
#define CACHE_FACTS_ALL                                                                            \
	(CACHE_REST | CACHE_INFO | CACHE_COOKIE | CACHE_MPTCP | CACHE_SILENCE | CACHE_PATH)

/*
 * The facts. Each @until is when it ends to be known: one that lies further ahead than
 * CACHE_LIFETIME_MAX is brought down to that, one that has passed makes the cache forget the fact.
 */
struct cache_converter {
	unsigned int known; /* bits of enum cache_fact; what isn't known is zero */
	struct {
		int64_t until;
	} rest;
	struct {
		int64_t until;
		int64_t learned;                /* when it answered; set by cache_converter_update() */
		uint32_t flags;                 /* the caller's, for what private-use TLVs said */
		uint8_t count;                  /* of kinds; 0: it supports none */
		uint8_t kinds[CACHE_KINDS_MAX]; /* of Section 6.2.4, none of them 0 */
	} info;
	struct {
		int64_t until;
		uint16_t len; /* bytes, 1 to CACHE_COOKIE_MAX */
		uint8_t bytes[CACHE_COOKIE_MAX];
	} cookie;
	struct {
		int64_t until;
		enum cache_mptcp verdict;
	} mptcp;
	struct {
		int64_t until;
		int64_t learned;       /* when it was silent last; set by cache_converter_update() */
		uint64_t destination;  /* as to which server: a hash of the caller's */
		uint32_t destinations; /* 1 or more, as the caller counts them */
	} silence;
	struct {
		int64_t until;
		int64_t asked;         /* when it was last asked whether it works again, or has lost data, as cache_now() */
		enum cache_path state; /* not UNKNOWN */
		uint16_t rtt_ms;       /* 0: not known */
		uint8_t doubts;        /* the caller's count of answers that it owes, or of data that it has lost */
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
 * of two that change the same fact one wins. @in->known and @in->info.learned are not looked at.
 *
 * Returns 0; -ENOENT if the cache is off; -EINVAL with nothing done for a value out of the
 * range given above, or an address of another family; -EFAULT if the file has been cut or its file
 * system is full, or another -errno of process_vm_writev(2).
 */
int cache_converter_update(const struct cache *cache, const union sockaddr_ip *address,
			   uint64_t path, unsigned int facts, int64_t now,
			   const struct cache_converter *in);

/* --- servers ------------------------------------------------------------------------------ */

struct cache_server {
	enum cache_server_verdict verdict;
	int64_t learned; /* when; set by cache_server_put() */
	int64_t until;   /* as in struct cache_converter */
};

/* What is known of the server at @address, or zero (UNKNOWN). Returns @out->verdict. */
enum cache_server_verdict cache_server_get(const struct cache *cache,
					   const union sockaddr_ip *address, int64_t now,
					   struct cache_server *out);

/*
 * cache_server_put() - note @verdict until @until; the last one put counts
 * UNKNOWN, or an @until that has passed, makes the cache forget the server. Returns as
 * cache_converter_update().
 */
int cache_server_put(const struct cache *cache, const union sockaddr_ip *address,
		     enum cache_server_verdict verdict, int64_t now, int64_t until);

#endif
