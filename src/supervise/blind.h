/* SPDX-License-Identifier: BSD-3-Clause */
/* blind.h - follows blind requests after their calls are answered, and makes lost ones again */
#ifndef SUPERVISE_BLIND_H
#define SUPERVISE_BLIND_H

#include "common/sockaddr.h"
#include "engine/path_start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct connection;

/* --- blind_requests.c --- */

/* Follows the blind request just sent for @connection, whose call the caller is about to answer. */
void blind_requests_expect(struct connection *connection);

/*
 * Looks at all requests that are due. Returns when the next one is due, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
 */
int64_t blind_requests_look(int64_t now);

/* Leaves the socket with this SO_COOKIE alone from now on, since the program uses it for something else. */
void blind_requests_cancel(uint64_t cookie);

/*
 * blind_requests_note_open() - note the fate of open requests when the last program has ended
 * Requests whose connection the kernel no longer knows may have failed: the user's next connection isn't blind, and finds that out.
 */
void blind_requests_note_open(void);

/* Takes the results of blind_retry_start(), when supervision.retry_ready is readable. */
void blind_requests_take_results(void);

/*
 * enquiry_start() - ask the converter of @start over its network
 * The answer is noted as if a connection had learned it. Returns true if the question is under way, or if the converter has answered within
 * the last second that it takes blind requests.
 */
bool enquiry_start(const struct path_start *start, int64_t now);

/* Looks for an answer. Returns when to look again, in nanoseconds of CLOCK_MONOTONIC; 0 for not at all. */
int64_t enquiry_look(int64_t now);

/* --- blind_judge.c: decisions, without I/O --- */

/*
 * Linux repeats a SYN after a second, without its data, and the converter resets the connection that results. So we make an unanswered
 * request again before that, after this time at most. The converter releases the SYN of a request with an Attempt within 700 ms, or never:
 * after a longer silence the SYN or its answer was lost, or the server is slow.
 */
#define BLIND_REPEAT_MS 900
#define BLIND_KERNEL_REPEATS_NS 1000000000 /* Linux repeats a SYN after this time at first: TCP_TIMEOUT_INIT, RFC 6298 */
#define BLIND_REPEATS_MAX 3

/*
 * A converter that recognizes a request by its Attempt (doc/private-tlvs.md) asks the server once, however often we make the request,
 * and releases the last SYN. So we repeat requests for 11 s, however short our waits for an answer are: a server that answers the fourth
 * SYN, since three were lost on the way to it, does so after 7 s.
 */
#define BLIND_REPEATS_KNOWN_MAX 16

/* How long a converter has to answer a probe. */
#define BLIND_PROBE_MS 1000

/* The kernel's view of the connection. */
struct blind_seen {
	bool exists;       /* the connection exists */
	bool syn_sent;     /* no SYN+ACK has come */
	bool answered;     /* a SYN+ACK has come, and the kernel measured its round trip */
	bool taken;        /* the SYN+ACK acknowledged the SYN's data */
	bool syn_repeated; /* the kernel has sent the SYN again, without its data */
};

struct blind_request {
	int64_t started, syn_at; /* when the first SYN was sent, and the last one: nanoseconds of CLOCK_MONOTONIC */
	int repeats;             /* SYNs that we sent again, with the request */
	int repeats_max;
	bool repeatable;         /* we can make the request again */
	int64_t silent_at;       /* when blind_judge() returned BLIND_SILENT; 0: never */
	int64_t repeat_after;    /* nanoseconds from the last SYN to the next one: blind_repeat_after() */
	int64_t withheld;        /* for how long the converter withholds a SYN at most, in nanoseconds */
	int64_t waiting_at;      /* when we last saw that no SYN+ACK had come; 0: never */
};

enum blind_verdict {
	BLIND_OPEN,    /* look again at *@look_at */
	BLIND_REPEAT,  /* make the request again, now */
	BLIND_TAKEN,   /* the converter has the request */
	BLIND_UNTAKEN, /* the path has lost the SYN's data, but not the SYN: make no further request blindly */
	BLIND_SILENT,  /* no SYN+ACK for @patience, returned once: probe the converter, and look again at *@look_at */
	BLIND_TO_KERNEL, /* no repeats are left, and the converter has had BLIND_PROBE_MS: leave the connection to the kernel */
	BLIND_SLOW,    /* the converter reset the connection after it had waited for the server as long as it may */
	BLIND_GONE,    /* refused, reset or closed; or the kernel's own SYN, without the request, got through */
};

/*
 * blind_repeat_after() - how long to wait for the answer to a SYN that a converter withholds for @withheld at most, in nanoseconds
 * @rtt: the round trip to the converter, in nanoseconds; 0: not known. The result leaves a busy machine some time before the
 * kernel repeats the SYN itself, after a second.
 */
int64_t blind_repeat_after(int64_t withheld, int64_t rtt);

/* Returns when to look first at a request whose SYN was sent at @now. */
int64_t blind_first_look(int64_t now);

/*
 * blind_judge() - decide how to proceed with @request, whose connection looks like @seen at the time @now
 * @patience: how long a converter may be silent, in nanoseconds.
 */
enum blind_verdict blind_judge(struct blind_request *request, const struct blind_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at);

/* --- servers that were too slow for a blind request, or for which one has failed --- */

enum blind_trouble {
	/* The converter gave up a blind request. The next request waits for its response, however long that takes. */
	BLIND_TROUBLE_SLOW,
	/*
	 * We found the connection of a blind request gone, and don't know whether the converter serves that server (converters_admits()).
	 * The program may have closed the socket, or the server or the converter may have refused. The next request waits for its
	 * response, unless we know by then that the converter serves the server.
	 */
	BLIND_TROUBLE_FAILED,
	BLIND_TROUBLES
};

#define BLIND_MEMORY_PLACES 1024 /* by sockaddr_ip_hash() without port; of two servers with the same place we forget the older */

void blind_memory_note(const union sockaddr_ip *server, enum blind_trouble trouble);

/* Has a blind request for this server had this trouble lately? */
bool blind_memory_has(const union sockaddr_ip *server, enum blind_trouble trouble);

/* --- blind_retry.c --- */

/* All that is needed to make a request again. The supervisor keeps no descriptor of the socket, so that the program's close() ends it. */
struct blind_retry {
	pid_t tid;       /* a thread of the program */
	int program_fd;  /* the program's descriptor number */
	uint64_t cookie; /* SO_COOKIE of the socket, since @program_fd may be another socket by now */
	uint64_t inode;  /* the socket's name in /proc */
	union sockaddr_ip to;
	uint8_t *message; /* all that the first SYN carried, owned, to be freed; NULL: the request can't be made again */
	size_t len;
	bool counted; /* the request has an Attempt, with a count of its repeats */
};

/* Fills @retry for the socket @fd, whose SYN carried the @len bytes of @message. */
void blind_retry_note(struct blind_retry *retry, int fd, const void *message, size_t len);

/* --- many requests at a time, in a thread --- */

#define BLIND_RETRY_MAX 64 /* requests at a time */

struct blind_retry_order {
	void *owner; /* the caller's own */
	const struct blind_retry *retry;
	const struct path_start *start;
	unsigned int count; /* how often the request was made before */
	int64_t syn_at;     /* when the last SYN was sent: nanoseconds of CLOCK_MONOTONIC */
	/* the result */
	bool found;              /* the program still has the socket */
	bool sent;
	int64_t sent_at;         /* nanoseconds of CLOCK_MONOTONIC */
	union sockaddr_ip local; /* the connection's address here */
	int device;              /* index of the interface that the socket is bound to; 0: none */
};

/*
 * blind_retry_start() - start a thread that makes these requests again, BLIND_RETRY_MAX at most
 * The caller fills the fields above the result, and doesn't touch what they point to until blind_retry_end(). Returns false, with nothing
 * done, if no thread can be created.
 */
bool blind_retry_start(const struct blind_retry_order *orders, int count);

/* Returns whether blind_retry_end() is still to be called. supervision.retry_ready becomes readable when the orders are done. */
bool blind_retry_is_busy(void);

/* Ends the thread, and returns the orders with their results, @count of them. */
const struct blind_retry_order *blind_retry_end(int *count);

/*
 * blind_retry_cancel() - don't make the request of this owner again; call with blind_retry_lock() held
 * Returns whether the thread has the order: then blind_retry_end() still returns its result.
 */
bool blind_retry_cancel(const void *owner);

/* The lock keeps the thread from disconnecting a program's socket, so that its state stays as we saw it. */
void blind_retry_lock(void);
void blind_retry_unlock(void);

#endif
