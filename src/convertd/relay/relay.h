/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.h - carry two byte streams between two sockets; knows no protocol */
#ifndef CONVERTD_RELAY_H
#define CONVERTD_RELAY_H

#include "convertd/relay/relay_pipe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the scratch buffer that all relays of an event loop share. */
#define RELAY_SCRATCH_SIZE (256 * 1024)

/* The two sockets; a flow bears the name of the one that its bytes come from. */
enum relay_end {
	RELAY_UPSTREAM,   /* the client's socket */
	RELAY_DOWNSTREAM, /* the server's socket */
	RELAY_ENDS
};

/*
 * A socket, and what edge-triggered events have said about it. A flag is set by an event, and
 * readable and writable are cleared by the EAGAIN that disproves it.
 */
struct relay_side {
	int fd; /* non-blocking; -1: none yet; owned by whoever owns the relay */
	bool readable;
	bool writable;
	bool ended;  /* the last event said: the peer's FIN is there, and no error */
	bool news;   /* an event has come since the socket was last asked for an error */
	bool tcp;    /* plain TCP: see relay.c */
	bool garbled; /* the kernel has lost bytes of it: see fallback.c; it has failed then */
	bool failed; /* an error was read or met in writing: see relay.c */
	bool capped; /* no more may be written to it than these bytes on the wire: see relay_cap() */
	uint16_t overhead, segment;
	uint32_t allowance;
	uint64_t received; /* bytes read from it, unless it is plain TCP */
};

/*
 * relay_side_is_garbled() - after a read of @got bytes (0: the end): has the kernel lost bytes in front of them?
 * Then what was read must not be handed on. See fallback.c.
 */
bool relay_side_is_garbled(struct relay_side *side, size_t got);

/* A direction, named by where its bytes come from. */
struct relay_flow {
	uint8_t *pending;     /* read but not yet written; NULL while there is nothing */
	uint32_t pending_len; /* bytes of the buffer */
	uint32_t pending_off; /* of them written already */
	uint32_t chunk;       /* bytes that the next read asks for */
	bool bulk;            /* the last read gave much */
	bool eof;             /* the source has said its last */
	bool shut;            /* and the other side was told */
	struct relay_pipe *pipe; /* has what was read but not yet written, behind @pending; or NULL */
	uint64_t bytes;          /* written to the other side */
};

struct relay {
	struct relay_side side[RELAY_ENDS];
	struct relay_flow flow[RELAY_ENDS];
	struct relay_pipes *pipes; /* NULL: all is copied */
};

enum relay_result {
	RELAY_WAIT,            /* nothing to do before the next event */
	RELAY_AGAIN,           /* its share of this round is used up: call again, others first */
	RELAY_DONE,            /* both directions have ended in order; close() is the last FIN */
	RELAY_UPSTREAM_LOST,   /* the upstream socket failed (reset, time-out ...), and all that */
			       /* it had sent was written to the other */
	RELAY_DOWNSTREAM_LOST, /* likewise the downstream socket */
};

/* @pipes: of the event loop, or NULL */
void relay_init(struct relay *relay, struct relay_pipes *pipes);

/*
 * relay_set_tcp() - @end's socket, which is there, is plain TCP
 * Much that it has may be spliced. It gets SO_OOBINLINE: urgent data is like any other.
 */
void relay_set_tcp(struct relay *relay, enum relay_end end);

/*
 * relay_cap() - from now on little may be written to @end's socket, and no FIN
 * @allowance: bytes on the wire; what doesn't fit stays where it comes from
 * @overhead: bytes of them that each write costs besides its own, for headers
 * @segment: bytes of one write at most, so that it is one segment
 */
void relay_cap(struct relay *relay, enum relay_end end, uint32_t allowance, uint16_t overhead,
	       uint16_t segment);

/* No limit any more. The caller runs the relay again. */
void relay_uncap(struct relay *relay, enum relay_end end);

/* Is there anything that was read and not written yet? */
bool relay_has_pending(const struct relay *relay, enum relay_end from);

/* Has a socket failed? After RELAY_WAIT, the other one's peer doesn't take what came before. */
bool relay_has_failed(const struct relay *relay);

/* Frees what is pending. Sockets are left alone. */
void relay_fini(struct relay *relay);

/*
 * relay_prepend() - bytes that go to the other side before all that @from's socket has
 * They stand behind bytes prepended earlier. Returns 0 or -ENOMEM.
 */
int relay_prepend(struct relay *relay, enum relay_end from, const uint8_t *data, size_t len);

/*
 * relay_flush() - write what is pending in the direction from @from
 * Returns 0 with nothing left, -EAGAIN with something left, or -errno of the write.
 */
int relay_flush(struct relay *relay, enum relay_end from);

/*
 * relay_run() - move bytes both ways, as far as both sockets are ready
 * @scratch: RELAY_SCRATCH_SIZE bytes, free for use by others after the call
 */
enum relay_result relay_run(struct relay *relay, uint8_t *scratch);

#endif
