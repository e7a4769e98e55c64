/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h - facts about converters and servers that all of a user's processes share
 *
 * A file of fixed size in a directory of the user (cache_find()) holds hints. A hint may be lost at any moment and may be wrong, so a
 * caller must work without hints and must notice by itself when one misleads it. The caller decides when to note a hint and how to use it.
 * The cache finds a hint only in the network namespace in which it was noted.
 *
 * After cache_open_at() any thread, any signal handler and any child of fork() or vfork() may call every function: the cache has no lock,
 * no allocation, no global state and no cancellation point, and never waits for another process. errno stays as it was.
 *
 * Other processes may truncate or overwrite the file, or its file system may be full. A call then finds nothing, or a wrong value within
 * the limits stated here. It never raises SIGBUS.
 *
 * Times are milliseconds of CLOCK_BOOTTIME, which means the same in all processes. The caller passes @now, as a rule cache_now().
 *
 * user_cache.c has these functions, and cache_file.c the accesses to the file.
 */
#ifndef CLIENT_CACHE_H
#define CLIENT_CACHE_H

#include "client/settings.h"
#include "common/sockaddr.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CACHE_FILE "libconvert-cache-3" /* in the directory; the number is the layout's */
#define CACHE_FILE_PATH_MAX 512              /* bytes of the file's path, with the NUL, in a process that may change its identity */
#define CACHE_COOKIE_MAX 992            /* bytes that fit into a request beside a Connect TLV */
#define CACHE_KINDS_MAX 32              /* TCP option kinds of an answer to an Info TLV */
#define CACHE_LIFETIME_MAX (24 * 3600 * INT64_C(1000)) /* ms; no hint outlives this, except notes (notes.h) */

/* A cache. { 0 } is a cache that is off: it finds nothing and keeps nothing. */
struct cache {
	uint8_t *file; /* the mapping; NULL: it isn't mapped */
	int kept_fd;   /* the descriptor that a process of ours keeps, never a standard stream's; 0: none */
	char path[CACHE_FILE_PATH_MAX]; /* of the file, if each call opens it; empty: mapped, kept open, or off */
	uid_t user; /* the effective user who opened it; the cache is off for all others */
	_Atomic uint64_t network; /* the namespace to read and write: cache_network() */
};

static inline bool cache_is_on(const struct cache *cache)
{
	return cache->file || cache->kept_fd || *cache->path;
}

/*
 * cache_open_at() - open the cache in @directory, a descriptor, or create it
 * The caller has checked who owns the directory and who else may write to it (cache_find()). @path: the directory's
 *
 * Replaces a file of ours that is damaged, or that another boot left, by an empty one of the same name. Processes that have the old file
 * open continue with it.
 *
 * Returns 0, or why the cache is off (@cache is then { 0 }): -EPERM other users may use the file, or the program is set-user-ID or has file
 * capabilities; -EEXIST the name belongs to an object that isn't a file; -ENOSYS the kernel or a sandbox has no process_vm_readv(2); or
 * another -errno of open(2) or mmap(2). cache_problem() has a text for each. Meant for start-up: not async-signal-safe, and a cancellation
 * point.
 */
int cache_open_at(struct cache *cache, int directory, const char *path);

/* Closes the cache and leaves the file in place. No other call may be under way. */
void cache_close(struct cache *cache);

/* Unmaps the file if the process no longer runs as the user who opened the cache. Every other call for the cache does so, too. */
void cache_check_identity(const struct cache *cache);

/* Returns a static text for an error of cache_open_at() or cache_find(); it completes "DIRECTORY: …". */
const char *cache_problem(int error);

/*
 * cache_network() - return a number for the network namespace of the socket @fd, or of the calling thread if @fd is -1
 * The number is SO_NETNS_COOKIE (Linux 5.14), unique until the next boot; on older kernels the inode of /proc/self/ns/net. 0: unknown.
 */
uint64_t cache_network(int fd);

/* Milliseconds of CLOCK_BOOTTIME. */
int64_t cache_now(void);

/* Returns the time @seconds from now, for an @until. */
static inline int64_t cache_in(int64_t seconds)
{
	return cache_now() + seconds * 1000;
}

/* --- converters --- */

/* Does Multipath TCP get through to a converter? The file contains the values of this enum, of enum cache_path and of enum cache_answer. */
enum cache_mptcp {
	CACHE_MPTCP_UNKNOWN,
	CACHE_MPTCP_HOLDS, /* a connection was still Multipath TCP when the response had come */
	CACHE_MPTCP_LOST,  /* a connection fell back to TCP */
	CACHE_MPTCP_DOUBTED, /* a connection fell back where others had not; a lost packet may be the cause */
	CACHE_MPTCP_COUNT
};

/* The last known state of a path to a converter. */
enum cache_path {
	CACHE_PATH_UNKNOWN,
	CACHE_PATH_WORKS,
	CACHE_PATH_DATALESS, /* it works, but takes no data in SYNs */
	CACHE_PATH_LOSES,    /* it answered some of several SYNs */
	CACHE_PATH_SILENT,   /* it answered none */
	CACHE_PATH_REFUSES,  /* something on it answers in the converter's place, by a reset or by bytes that are no Convert response */
	CACHE_PATH_COUNT
};

/* The facts about a converter: a bit each. Each fact is a record with an end of its own. */
enum cache_fact {
	CACHE_REST = 1u << 0,    /* no process may ask it */
	CACHE_INFO = 1u << 1,    /* its answer to an Info TLV (Section 6.2.3) */
	CACHE_COOKIE = 1u << 2,  /* it gave a cookie (Section 6.2.7) */
	CACHE_MPTCP = 1u << 3,   /* whether Multipath TCP gets through on the path to it */
	CACHE_SILENCE = 1u << 4, /* it accepts connections, and has never answered a request */
	CACHE_PATH = 1u << 5,    /* the state of the path to it */
};
#define CACHE_FACTS_ALL (CACHE_REST | CACHE_INFO | CACHE_COOKIE | CACHE_MPTCP | CACHE_SILENCE | CACHE_PATH)

/*
 * The facts. The cache sets @learned, the time when the fact was noted. The fact ends at @until: the cache shortens this to
 * CACHE_LIFETIME_MAX from now, and forgets the fact if @until has passed. The members behind these two are laid out as in the file (union
 * cache_value of cache_file.h), without padding; @zero is 0.
 */
struct cache_converter {
	unsigned int known; /* bits of enum cache_fact; unknown facts are zero */
	struct {
		int64_t learned, until;
	} rest;
	struct {
		int64_t learned, until;
		uint32_t flags;                 /* the caller's, from private-use TLVs */
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
		uint64_t destination;  /* of the last silence: the caller's hash of the server */
		uint32_t destinations; /* 1 or more, as the caller counts them */
		uint32_t zero;
	} silence;
	struct cache_path_fact {
		int64_t learned, until;
		int64_t asked;         /* when a process last asked whether it works again, or when it lost data */
		enum cache_path state; /* not UNKNOWN */
		uint16_t rtt_ms;       /* 0: not known */
		uint8_t doubts;        /* the caller's: the trials that restore the path, or the SYNs whose data was lost */
		uint8_t zero;
	} path;
};

/*
 * cache_converter_get() - look up the facts about the converter at @address
 * @address: with its port; an IPv4 address equals its v4-mapped form, the scope doesn't count
 * @path: fingerprint of the client's path to the converter, for CACHE_PATH and CACHE_MPTCP; 0: the usual path, or the caller doesn't
 * distinguish paths. The cache finds only facts that were noted with the same value.
 * @facts: bits of enum cache_fact to look for
 * @out: written completely
 * Returns @out->known.
 */
unsigned int cache_converter_get(const struct cache *cache, const union sockaddr_ip *address,
				 uint64_t path, unsigned int facts, int64_t now,
				 struct cache_converter *out);

/*
 * cache_converter_update() - note, or forget, the facts @facts of @in
 * Leaves the other facts as they are, even if another process changes them at the same time. If two processes change the same fact, one of
 * them wins. Ignores @in->known and each @learned.
 *
 * Returns 0; -ENOENT if the cache is off; -EINVAL, with nothing done, for a value out of the range given above or an address of another
 * family; -EFAULT if the file was truncated or its file system is full; or another -errno of process_vm_writev(2) or pwrite(2).
 */
int cache_converter_update(const struct cache *cache, const union sockaddr_ip *address,
			   uint64_t path, unsigned int facts, int64_t now,
			   const struct cache_converter *in);

/* --- answers to questions about a destination --- */

enum cache_answer {
	CACHE_UNKNOWN,
	CACHE_YES,
	CACHE_NO,
	CACHE_ANSWER_COUNT
};

/*
 * cache_answer_get() - look up an answer about the destination at @address; UNKNOWN if there is none
 * @source: a number for the question, and for the converter that it is about. The cache finds only answers noted with the same value.
 */
enum cache_answer cache_answer_get(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, int64_t now);

/*
 * cache_answer_put() - note an answer until @until; the last one noted counts
 * UNKNOWN, or an @until that has passed, makes the cache forget it. Returns as cache_converter_update().
 */
int cache_answer_put(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, enum cache_answer answer, int64_t now,
		     int64_t until);

/* --- the directory of the cache --- */

/* Where to look. struct cache_place may point to the strings afterwards. */
struct cache_search {
	const char *wish;    /* CONVERT_CACHE: an absolute path, "none", or empty */
	const char *runtime; /* XDG_RUNTIME_DIR, or empty */
	bool make;           /* create the directory and the file if they are missing */
};

struct cache_place {
	const char *path; /* the directory in use, or the candidate; NULL: none. It, and the next, may point into @own */
	const char *refused; /* the first candidate that failed, for @refusal; NULL: none */
	int refusal;         /* -errno, for cache_problem() */
	char own[2][sizeof("/run/user/4294967295/libconvert")];
};

/*
 * cache_find() - map the cache in the first suitable directory
 *
 * Tries only the wish, if there is one. Else XDG_RUNTIME_DIR; /run/user/UID; root's /run/libconvert; and libconvert-UID in /dev/shm or
 * /tmp. Creates the last three if they are missing. This user must own the directory, and nobody else may write to it. In a directory where
 * others may write it must also not be a symbolic link, and nobody else may enter it; the directory around it must belong to root or this
 * user, and be sticky, so that nobody can put another one in its place.
 *
 * Returns as cache_open_at(), with all of @place set; -EPERM also if other users may write to a directory that the caller names, or own it;
 * -ENOENT if it is no absolute path, or, without search->make, if there is no file yet; -ECANCELED if the wish is "none".
 */
int cache_find(struct cache *cache, const struct cache_search *search, struct cache_place *place);

/* --- the cache that all of a user's processes share, opened at its first use --- */

/*
 * user_cache_init() - prepare this module; call it before any other function here
 * @settings: say where the cache is; not copied, so they must stay
 */
void user_cache_init(const struct settings *settings);

/*
 * user_cache_open() - open the cache for a connection
 * Opens it at the first call, so that programs which never connect don't open it, and logs a directory that it can't use. Any thread may
 * call it. While another thread opens the cache, it waits for 100 ms at most, and then goes on without a cache.
 * @fd: the connection's socket, whose network namespace the cache uses from now on; -1: keep the present one
 * Returns whether the namespace has changed: then the caller forgets the facts that this process has learned (converters_forget()).
 */
bool user_cache_open(int fd);

/*
 * After fork(): recovers from a thread of the parent that was opening the cache, as the child lacks it; the child opens the cache itself.
 * Closes it for another user.
 */
void user_cache_repair_in_child(void);

/* Returns the cache. It is off until user_cache_open() is done, and if the stack is too small for its records (common/thread.h). */
const struct cache *user_cache(void);

#endif
