/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.h - carries two byte streams between two sockets; knows no protocol */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ----- bytes that the kernel has lost on an MPTCP socket which fell back to TCP: fallback.c ----- */

/* The state of an MPTCP socket. */
struct fallback_look {
	bool fallen;      /* it has become plain TCP */
	uint8_t subflows; /* their number, unless the socket has fallen back */
};

/* Asks the kernel. @fd: an MPTCP socket */
void fallback_look(int fd, struct fallback_look *look);

/*
 * fallback_lost_bytes() - tell whether bytes of a stream have vanished in the kernel
 * @fd: an MPTCP socket
 * @received: the number of bytes that were read from it so far, SYN data included
 * @look: set, as fallback_look() does it
 * Returns false if that can't be known, as while there is more to read. Preserves errno.
 */
bool fallback_lost_bytes(int fd, uint64_t received, struct fallback_look *look);

/* ----- pipes, through which bytes go from socket to socket without being copied: relay_pipe.c ----- */

/* The capacity of a pipe in bytes; Linux lets any user have this much (fs.pipe-max-size). */
#define RELAY_PIPE_SIZE (256 * 1024)

struct relay_pipe;

/* The pipes of one event loop. It keeps one unused pipe as a spare, and closes the others. */
struct relay_pipes {
	struct relay_pipe *spare;
	size_t count; /* the number of open pipes, the spare included */
	size_t max;   /* the number of pipes that may be in use, of two descriptors each; 0: none */
	_Atomic uint64_t *in_use; /* a metric that counts the pipes in use; or NULL */
};

/* Returns how many pipes may be in use besides one of each event loop, in a process that may have @files descriptors. */
size_t relay_pipes_fit(uint64_t files);

/* Makes the spare pipe; after a failure (no descriptors, no memory) relay_pipe_get() tries again. Set @max and @in_use afterwards. */
void relay_pipes_init(struct relay_pipes *pipes);

/* Closes the spare pipe. All others must have been given back. */
void relay_pipes_fini(struct relay_pipes *pipes);

/* Returns an empty pipe, or NULL if @max are in use or none can be made. */
struct relay_pipe *relay_pipe_get(struct relay_pipes *pipes);

/* Gives a pipe back; bytes that are still in it are lost. NULL is fine. */
void relay_pipe_put(struct relay_pipes *pipes, struct relay_pipe *pipe);

/*
 * relay_pipe_fill() - take up to @len bytes from a socket into an empty pipe
 * Returns bytes, 0 at the end of the stream, or -1 with errno, as recv() does.
 */
ssize_t relay_pipe_fill(struct relay_pipe *pipe, int fd, size_t len);

/* relay_pipe_drain() - write the pipe's bytes to a socket, without waiting. Returns bytes, or -1 with errno, as send() does. */
ssize_t relay_pipe_drain(struct relay_pipe *pipe, int fd);

/* Returns the number of bytes in the pipe. */
size_t relay_pipe_len(const struct relay_pipe *pipe);

/* ----- relays: relay.c ----- */

/* The size in bytes of the scratch buffer that all relays of an event loop share. */
#define RELAY_SCRATCH_SIZE (256 * 1024)

/* The two sockets. A flow (direction) has the name of the socket that its bytes come from. */
enum relay_end {
	RELAY_UPSTREAM,   /* the client's socket */
	RELAY_DOWNSTREAM, /* the server's socket */
	RELAY_ENDS
};

/*
 * A socket, and its state by edge-triggered events. An event sets readable and writable, and the EAGAIN that
 * disproves one of them clears it.
 */
struct relay_side {
	int fd; /* non-blocking; -1: none yet; it belongs to the owner of the relay */
	bool readable;
	bool writable;
	bool ended;  /* the last event has reported the peer's FIN (EPOLLRDHUP) and no error */
	bool news;   /* an event has come since poll() last looked for an error of the socket */
	bool bytes_only; /* the last event was about bytes alone: a read that gets fewer than it asks for has got all of them */
	bool tcp;    /* it is plain TCP: see "Bulk data from plain TCP" in relay.c */
	bool garbled; /* the kernel has lost bytes of its stream (fallback.c); failed is set as well */
	bool looked; /* a read has filled in @mptcp since the caller last cleared this */
	struct fallback_look mptcp;
	uint8_t widened; /* the number of subflows that relay_widen() has seen */
	bool delays; /* TCP_NODELAY isn't set yet: see "Nagle" in relay.c */
	bool failed; /* a read or write has failed: see "Ends" in relay.c */
	bool capped; /* relay_cap() is in force, with the following values */
	uint16_t overhead, segment;
	uint32_t allowance;
	uint64_t received; /* the number of bytes read from it; not counted for plain TCP */
};

/*
 * relay_side_note() - note an edge-triggered event of a socket
 * @events: as epoll_wait(2) returns them, for a registration that has EPOLLPRI
 * Returns whether the socket is writable. The caller notes that in the side, since it may know better.
 */
bool relay_side_note(struct relay_side *side, uint32_t events);

/*
 * relay_side_is_garbled() - tell whether the kernel has lost bytes in front of those just read (fallback.c)
 * @got: the number of bytes that a read has just returned; 0: the end of the stream. It is added to @side->received.
 * If it returns true, the bytes that were read must not be handed on.
 */
bool relay_side_is_garbled(struct relay_side *side, size_t got);

/*
 * relay_steer() - tell how many bytes of a write should go first, on their own (relay_steer.c)
 * @len: the number of bytes to be written
 * Returns 0 if all should be written at once.
 */
size_t relay_steer(const struct relay_side *to, size_t len);

/* Opens the receive window if the bytes read so far are those of an upload (relay_window.c). Call it after a read. */
void relay_widen(struct relay_side *side);

/*
 * Resets a connection: its peer gets an RST, with MP_FASTCLOSE on MPTCP, now or at the latest when the caller closes the descriptor. @fd
 * may be any TCP or MPTCP socket.
 */
void relay_reset(int fd);

/* A direction, named after the socket that its bytes come from. */
struct relay_flow {
	uint8_t *pending;     /* a malloc()ed buffer of bytes that were read but not written; NULL: none */
	uint32_t pending_len; /* the number of bytes in the buffer */
	uint32_t pending_off; /* the number of them that are written already */
	uint32_t chunk;       /* the number of bytes that the next read asks for */
	bool bulk;            /* the last read returned RELAY_BULK_MIN bytes or more */
	bool eof;             /* the end of the source's stream was read */
	bool shut;            /* the end was passed on to the other side */
	struct relay_pipe *pipe; /* holds bytes that were read but not written, which follow @pending; or NULL */
	uint64_t bytes;          /* the number of bytes written to the other side */
};

struct relay {
	struct relay_side side[RELAY_ENDS];
	struct relay_flow flow[RELAY_ENDS];
	struct relay_pipes *pipes; /* the pipes of the event loop; NULL: all bytes are copied */
};

enum relay_result {
	RELAY_WAIT,            /* there is nothing to do before the next event */
	RELAY_AGAIN,           /* the budget of this round is used up: call again after other relays */
	RELAY_DONE,            /* both directions have ended in order; close() sends the last FIN */
	RELAY_UPSTREAM_LOST,   /* the upstream socket failed (reset, time-out ...), and all bytes */
			       /* that it had sent were written to the other */
	RELAY_DOWNSTREAM_LOST, /* the downstream socket failed, likewise */
};

/* Prepares a relay without sockets. @pipes: the pipes of the event loop, or NULL to copy all bytes */
void relay_init(struct relay *relay, struct relay_pipes *pipes);

/*
 * relay_set_tcp() - tell the relay that the socket of @end, which is set already, is plain TCP
 * Bulk data from it is spliced from now on. It gets SO_OOBINLINE, so that urgent data stays in the stream. RELAY_DOWNSTREAM gets
 * TCP_NODELAY before its second write; a client's socket has inherited that from its listener.
 */
void relay_set_tcp(struct relay *relay, enum relay_end end);

/*
 * relay_cap() - limit the bytes written to the socket of @end from now on, and keep its FIN back
 * @allowance: the limit in bytes on the wire; bytes beyond it stay in the socket that they come from
 * @overhead: bytes on the wire that each write costs for headers
 * @segment: the most bytes of one write, so that it becomes one segment
 */
void relay_cap(struct relay *relay, enum relay_end end, uint32_t allowance, uint16_t overhead,
	       uint16_t segment);

/* Lifts the limit of relay_cap(). The caller runs the relay again. */
void relay_uncap(struct relay *relay, enum relay_end end);

/* Tells whether there are bytes in the direction from @from that were read (or prepended) and not written yet. */
bool relay_has_pending(const struct relay *relay, enum relay_end from);

/* Tells whether a socket has failed. If so after RELAY_WAIT, the other peer hasn't yet taken the bytes from before the failure. */
bool relay_has_failed(const struct relay *relay);

/* Frees pending bytes and pipes. Sockets stay open. */
void relay_fini(struct relay *relay);

/*
 * relay_prepend() - add bytes that go to the other side before any that are read from the socket of @from
 * They are copied, and follow bytes prepended earlier. Returns 0 or -ENOMEM.
 */
int relay_prepend(struct relay *relay, enum relay_end from, const uint8_t *data, size_t len);

/*
 * relay_flush() - write the pending bytes of the direction from @from
 * Returns 0 if none is left, -EAGAIN if some are left, or -errno of the write.
 */
int relay_flush(struct relay *relay, enum relay_end from);

/*
 * relay_run() - move bytes both ways, as far as both sockets are ready
 * @scratch: a buffer of RELAY_SCRATCH_SIZE bytes, which holds nothing between calls
 */
enum relay_result relay_run(struct relay *relay, uint8_t *scratch);

/* ----- finds relays on which no bytes move any more: relay_look.c ----- */

/* The limit that a relay has passed. */
enum relay_watch_verdict {
	RELAY_WATCH_NONE,
	RELAY_WATCH_CLIENT_STALLED, /* the peer at RELAY_UPSTREAM takes nothing */
	RELAY_WATCH_SERVER_STALLED, /* the peer at RELAY_DOWNSTREAM takes nothing */
	RELAY_WATCH_HALF_CLOSED,    /* one direction has ended, and nothing moves in the other */
	RELAY_WATCH_IDLE,           /* nothing moves */
	RELAY_WATCH_COUNT
};

/* Limits in milliseconds; 0: no limit. */
struct relay_watch_settings {
	uint64_t stall_ms;      /* for how long a peer may take none of the bytes that wait for it */
	uint64_t half_close_ms; /* for how long nothing may move after one direction has ended */
	uint64_t idle_ms;       /* for how long nothing may move */
};

/* The state at the last look. */
struct relay_watch {
	uint64_t moved_ms;            /* when bytes were last seen to have moved */
	uint64_t bytes;               /* the number of bytes written, of both directions */
	uint64_t took_ms[RELAY_ENDS]; /* when a peer was last seen to have taken bytes, or to have had */
				      /* nothing to take */
	uint64_t taken[RELAY_ENDS];   /* the bytes that the peer had acknowledged */
	bool waits[RELAY_ENDS];       /* there was something for the peer to take */
};

/* Starts to watch: all limits begin at @now_ms. */
void relay_watch_start(struct relay_watch *watch, uint64_t now_ms);

/*
 * relay_watch_look() - tell whether the relay has passed a limit
 * Call it now and then: events since the last look count as happening at this one.
 * @now_ms: clock_now_ms()
 * Returns the first limit in the order of the enum that has passed, or RELAY_WATCH_NONE.
 */
enum relay_watch_verdict relay_watch_look(struct relay_watch *watch, const struct relay *relay,
					  const struct relay_watch_settings *settings,
					  uint64_t now_ms);

/* ----- measures the kernel memory that a relay holds, and how long its bytes haven't moved ----- */

/* The state at the last look; a zeroed one is ready for the first. */
struct relay_memory {
	uint64_t taken[RELAY_ENDS];    /* bytes that a peer had acknowledged when it was last seen to move, */
	uint64_t since_ms[RELAY_ENDS]; /* and when that was; 0: there was nothing for it to take */
	uint64_t bytes;                /* memory of sockets, pipes and our own buffers */
	uint32_t stalled_ms;           /* for this long a peer has taken next to nothing of them */
};

/* Tells whether the relay may hold much memory. It makes no system call; ask it after each relay_run(). */
bool relay_memory_may_grow(const struct relay *relay);

/* Measures the memory, with four system calls, and how long it hasn't moved. @now_ms: clock_now_ms() */
void relay_memory_look(struct relay_memory *memory, const struct relay *relay, uint64_t now_ms);

/* Returns the bytes that a peer hasn't acknowledged yet, of the peer with more of them. */
uint64_t relay_memory_unsent(const struct relay *relay);

#endif
