/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.c - carries two byte streams between two sockets; knows no protocol
 *
 * A relay is two flows that share nothing but their sockets. A flow reads into the scratch buffer that all relays
 * share and writes from there at once. It copies only bytes that the other side didn't take into a buffer of its own,
 * and reads no more until these are written. So idle connections hold no buffer, and a receiver that is slow slows
 * down its sender.
 *
 * The buffer is large because its size decides the speed of bulk transfers (one system call for as much as possible).
 * Towards a slow receiver a large read would be copied and kept nearly whole each time, so the size of reads follows
 * what the receiver takes.
 *
 * Bulk data from plain TCP: a flow splices it through a pipe, which takes a third of the CPU time of copying (bench: ways); for small
 * amounts, copying is faster. Relays share pipes as they share the buffer, but a pipe with bytes that the other side didn't take belongs to
 * the flow until it has written them. The number of pipes is limited; a flow without one copies.
 *
 * Urgent data (MSG_OOB) of plain TCP stays in the stream as ordinary bytes: Multipath TCP has no urgent data.
 *
 * Ends: a relay passes on the end of a stream in order, behind its bytes (half-close is kept). It does the same with
 * a failure: a server may answer and then reset the connection since it doesn't want to read the rest, and its answer
 * is still in our socket when a write to that fails with ECONNRESET. Therefore the relay reads a failed socket to its
 * end, writes nothing more to it, and then reports it as lost. The caller decides what to do with the other socket.
 *
 * Segments: prepended bytes go out with the first bytes of the stream if those are there, and alone otherwise. If the
 * end of the stream has come, the flow reads it before it writes the last bytes, which then go out in one segment
 * with the FIN (MSG_MORE; on MPTCP, the kernel alone decides about FINs). A short read has emptied a plain TCP socket
 * if the last event was about bytes alone: later bytes raise another edge. Otherwise another read follows until
 * EAGAIN: a reset or an end that has come with the bytes raises no other edge, and a read stops in front of urgent
 * data. The FIN of the second direction is sent by close(), which comes next anyway.
 *
 * Nagle: the kernel never holds back the first write to a socket, and many connections have no second one in that direction. So a server's
 * plain TCP socket gets TCP_NODELAY before its second write.
 *
 * Multipath TCP: a write to a client with several networks may be sent in two parts (relay_steer.c).
 *
 * A cap (relay_cap()): while a client hasn't proved its address, the relay writes a limited number of bytes to it, in
 * order, and no FIN. It doesn't read bytes beyond the limit: they stay in the socket that they come from, so a cap
 * costs no memory.
 *
 * Fairness: a flow moves RELAY_BUDGET bytes in one run. As events are edge-triggered, the caller has to run it again
 * after RELAY_AGAIN without an event.
 */
#include "config.h"

#include "relay/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The number of bytes that one flow may read in one run. */
#define RELAY_BUDGET (1024 * 1024)

/* The least bytes that a read asks for. */
#define RELAY_CHUNK_MIN (16 * 1024)

/* After a read of at least this many bytes, the next one is spliced. */
#define RELAY_BULK_MIN (32 * 1024)

void relay_init(struct relay *relay, struct relay_pipes *pipes)
{
	memset(relay, 0, sizeof(*relay));
	relay->pipes = pipes;
	for (int i = 0; i < RELAY_ENDS; i++) {
		relay->side[i].fd = -1;
		relay->flow[i].chunk = RELAY_SCRATCH_SIZE;
	}
}

/* SO_LINGER makes close() reset TCP sockets only; connect() to AF_UNSPEC resets MPTCP sockets as well. */
void relay_reset(int fd)
{
	static const struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	static const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	connect(fd, &unspec, sizeof(unspec)); /* fails if the connection has ended already, which is fine */
}

void relay_set_tcp(struct relay *relay, enum relay_end end)
{
	static const int on = 1;
	struct relay_side *side = &relay->side[end];

	side->tcp = true;
	side->delays = end == RELAY_DOWNSTREAM;
	setsockopt(side->fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

void relay_cap(struct relay *relay, enum relay_end end, uint32_t allowance, uint16_t overhead,
	       uint16_t segment)
{
	struct relay_side *side = &relay->side[end];

	side->capped = true;
	side->allowance = allowance;
	side->overhead = overhead;
	side->segment = segment;
}

void relay_uncap(struct relay *relay, enum relay_end end)
{
	relay->side[end].capped = false;
}

/* Returns the number of bytes that one write may have; SIZE_MAX: no limit. */
static size_t side_room(const struct relay_side *to)
{
	size_t room;

	if (!to->capped)
		return SIZE_MAX;
	room = to->allowance > to->overhead ? to->allowance - to->overhead : 0;
	return room < to->segment ? room : to->segment;
}

static void flow_drop_pending(struct relay_flow *flow)
{
	free(flow->pending);
	flow->pending = NULL;
	flow->pending_len = flow->pending_off = 0;
}

void relay_fini(struct relay *relay)
{
	for (int i = 0; i < RELAY_ENDS; i++) {
		flow_drop_pending(&relay->flow[i]);
		relay_pipe_put(relay->pipes, relay->flow[i].pipe);
		relay->flow[i].pipe = NULL;
	}
}

bool relay_has_pending(const struct relay *relay, enum relay_end from)
{
	return relay->flow[from].pending || relay->flow[from].pipe;
}

int relay_prepend(struct relay *relay, enum relay_end from, const uint8_t *data, size_t len)
{
	struct relay_flow *flow = &relay->flow[from];
	uint8_t *pending;

	if (!len)
		return 0;
	pending = realloc(flow->pending, flow->pending_len + len);
	if (!pending)
		return -ENOMEM;
	memcpy(pending + flow->pending_len, data, len);
	flow->pending = pending;
	flow->pending_len += (uint32_t)len;
	return 0;
}

/* Sets TCP_NODELAY before the second write to @to (Nagle). Call it before each write. */
static void side_hurry(struct relay_side *to, const struct relay_flow *flow)
{
	static const int on = 1;

	if (!to->delays || !flow->bytes)
		return;
	to->delays = false;
	setsockopt(to->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Sends like send(2), again after signals. */
static ssize_t side_send(const struct relay_side *to, const uint8_t *data, size_t len, int flags)
{
	ssize_t n;

	do
		n = send(to->fd, data, len, flags);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Sends like side_send(), in two parts if that brings the second one to a faster subflow. */
static ssize_t side_send_steered(const struct relay_side *to, const uint8_t *data, size_t len, int flags)
{
	size_t lead = relay_steer(to, len);
	ssize_t n = lead ? side_send(to, data, lead, flags) : 0, rest;

	if (n < (ssize_t)lead)
		return n;
	rest = side_send(to, data + lead, len - lead, flags);
	if (rest < 0)
		return lead && errno == EAGAIN ? n : rest;
	return n + rest;
}

/* Writes to @to as much as it takes. Returns the bytes written, 0 if the socket is full, or -errno. */
static ssize_t side_write(struct relay_side *to, struct relay_flow *flow, const uint8_t *data,
			  size_t len)
{
	ssize_t n;

	/* shutdown() follows once all bytes are written: MSG_MORE lets them go out in the segment of the FIN. */
	bool fin_follows = flow->eof && to->tcp && !to->capped;
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (fin_follows ? MSG_MORE : 0);
	size_t room = side_room(to), most = len < room ? len : room;

	if (!most) {
		to->writable = false;
		return 0;
	}
	side_hurry(to, flow);
	n = side_send_steered(to, data, most, flags);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < 0)
		n = 0;
	flow->bytes += (size_t)n;
	if (to->capped && n)
		to->allowance -= (uint32_t)n + to->overhead;
	/* A short write means that the socket is full, until the next edge says otherwise. */
	if ((size_t)n < len)
		to->writable = false;
	return n;
}

/* Writes the bytes in the flow's pipe as relay_flush() does, and gives the empty pipe back. */
static int flush_pipe(struct relay *relay, struct relay_flow *flow, struct relay_side *to)
{
	while (flow->pipe && relay_pipe_len(flow->pipe)) {
		ssize_t n;

		if (!to->writable)
			return -EAGAIN;
		side_hurry(to, flow);
		n = relay_pipe_drain(flow->pipe, to->fd);
		if (n > 0)
			flow->bytes += (size_t)n;
		else if (errno == EAGAIN)
			to->writable = false;
		else if (errno != EINTR)
			return -errno;
	}
	relay_pipe_put(relay->pipes, flow->pipe);
	flow->pipe = NULL;
	return 0;
}

int relay_flush(struct relay *relay, enum relay_end from)
{
	struct relay_flow *flow = &relay->flow[from];
	struct relay_side *to = &relay->side[!from];

	while (flow->pending) {
		ssize_t n;

		if (!to->writable)
			return -EAGAIN;
		n = side_write(to, flow, flow->pending + flow->pending_off,
			       flow->pending_len - flow->pending_off);
		if (n < 0)
			return (int)n;
		flow->pending_off += (uint32_t)n;
		if (flow->pending_off == flow->pending_len)
			flow_drop_pending(flow);
	}
	return flush_pipe(relay, flow, to);
}

/* Adapts the size of the next read to what the receiver takes at once: see above. */
static void flow_adapt_chunk(struct relay_flow *flow, size_t read, size_t written)
{
	if (written < read)
		flow->chunk = written > RELAY_CHUNK_MIN ? (uint32_t)written : RELAY_CHUNK_MIN;
	else if (read == flow->chunk && flow->chunk < RELAY_SCRATCH_SIZE)
		flow->chunk = flow->chunk < RELAY_SCRATCH_SIZE / 2 ? flow->chunk * 2 :
								     RELAY_SCRATCH_SIZE;
}

bool relay_has_failed(const struct relay *relay)
{
	return relay->side[RELAY_UPSTREAM].failed || relay->side[RELAY_DOWNSTREAM].failed;
}

static enum relay_result lost_at(enum relay_end end)
{
	return end == RELAY_UPSTREAM ? RELAY_UPSTREAM_LOST : RELAY_DOWNSTREAM_LOST;
}

/* Notes that writing to @end has failed; the bytes that its peer has sent are still to be read. */
static enum relay_result side_fail(struct relay *relay, enum relay_end end)
{
	relay->side[end].failed = relay->side[end].readable = true;
	return lost_at(end);
}

/*
 * Notes the end of the source's stream. If an event has reported it already, nothing is left to read, since an error
 * would raise another event.
 */
static void flow_end(struct relay_flow *flow, struct relay_side *source)
{
	flow->eof = true;
	if (source->ended)
		source->readable = false;
}

bool relay_side_note(struct relay_side *side, uint32_t events)
{
	/* A socket that was closed in both directions without an error has EPOLLHUP and EPOLLRDHUP. */
	bool failed = events & EPOLLERR || (events & (EPOLLHUP | EPOLLRDHUP)) == EPOLLHUP;

	side->readable |= failed || (events & EPOLLIN);
	side->ended = !failed && (events & EPOLLRDHUP);
	side->bytes_only = !failed && !(events & (EPOLLRDHUP | EPOLLPRI));
	side->news = true;
	return failed || (events & EPOLLOUT);
}

bool relay_side_is_garbled(struct relay_side *side, size_t got)
{
	if (side->tcp)
		return false;
	side->received += got;
	side->looked = true;
	side->garbled = side->garbled || fallback_lost_bytes(side->fd, side->received, &side->mptcp);
	return side->garbled;
}

/*
 * Reads up to @most bytes into @scratch; if an event has reported the stream's end, a second recv() reads that too.
 * Returns bytes, 0 at the end of the stream, or -1 with errno: EBADMSG if the kernel has lost bytes.
 */
static ssize_t flow_read(struct relay_flow *flow, struct relay_side *source, uint8_t *scratch,
			 size_t most)
{
	ssize_t got = recv(source->fd, scratch, most, MSG_DONTWAIT), more = -1;

	if (got < 0)
		return got;
	if (got > 0 && (size_t)got < most && source->ended) {
		more = recv(source->fd, scratch + got, most - (size_t)got, MSG_DONTWAIT);
		source->failed |= more < 0 && errno != EAGAIN && errno != EINTR; /* the kernel reports it only once */
	}
	if (more > 0)
		got += more;
	if (relay_side_is_garbled(source, (size_t)got)) {
		errno = EBADMSG;
		return -1;
	}
	relay_widen(source);
	if (more == 0)
		flow_end(flow, source);
	return got;
}

/*
 * Compares the bytes that a read got with those that it asked for. Multipath TCP sockets aren't judged by that: their
 * bytes come from queues of several subflows.
 */
static void side_has_given(struct relay_side *source, size_t got, size_t most)
{
	if (got < most && source->tcp && source->bytes_only && !source->failed)
		source->readable = false;
}

/* Handles a read that returned no bytes: @got is 0 at the end of the stream, or -1 with errno. */
static enum relay_result read_nothing(struct relay *relay, enum relay_end from, ssize_t got)
{
	struct relay_side *source = &relay->side[from];

	if (got == 0) {
		flow_end(&relay->flow[from], source);
		return RELAY_AGAIN;
	}
	if (errno == EINTR)
		return RELAY_AGAIN;
	if (errno != EAGAIN || source->failed) {
		source->failed = true;
		return lost_at(from);
	}
	source->readable = false;
	return RELAY_WAIT;
}

/* If bytes are pending, reads the stream's first bytes, and its end, behind them, so that all go out in one segment. */
static void flow_begin(struct relay *relay, enum relay_end from, uint8_t *scratch)
{
	struct relay_flow *flow = &relay->flow[from];
	struct relay_side *source = &relay->side[from], *to = &relay->side[!from];
	size_t room = side_room(to), waiting = flow->pending_len - flow->pending_off;
	ssize_t got;

	if (!flow->pending || flow->bytes || flow->eof || !source->readable || !to->writable || room <= waiting)
		return;
	room -= waiting;
	if (room > RELAY_CHUNK_MIN)
		room = RELAY_CHUNK_MIN;
	got = flow_read(flow, source, scratch, room);
	if (got <= 0) {
		read_nothing(relay, from, got);
		return;
	}
	side_has_given(source, (size_t)got, room);
	if (relay_prepend(relay, from, scratch, (size_t)got) < 0)
		source->failed = to->failed = true;
}

static void flow_account(struct relay_flow *flow, size_t got, size_t *budget)
{
	*budget -= got < *budget ? got : *budget;
	flow->bulk = got >= RELAY_BULK_MIN;
}

/*
 * Reads once, and writes the bytes to the other side. @budget: the bytes that may still be read in this run.
 * Returns RELAY_AGAIN to go on, RELAY_WAIT if there is nothing to read, or which socket is lost.
 */
static enum relay_result flow_step(struct relay *relay, enum relay_end from, uint8_t *scratch,
				   size_t *budget)
{
	struct relay_flow *flow = &relay->flow[from];
	struct relay_side *source = &relay->side[from], *to = &relay->side[!from];
	size_t room = side_room(to);
	size_t most = room < flow->chunk ? room : flow->chunk;
	ssize_t got, put;

	got = flow_read(flow, source, scratch, most);
	if (got <= 0)
		return read_nothing(relay, from, got);
	side_has_given(source, (size_t)got, most);
	flow_account(flow, (size_t)got, budget);
	put = side_write(to, flow, scratch, (size_t)got);
	if (put < 0)
		return side_fail(relay, !from);
	flow_adapt_chunk(flow, (size_t)got, (size_t)put);
	if (put < got && relay_prepend(relay, from, scratch + put, (size_t)(got - put)) < 0) {
		/* Bytes of the stream are gone: no more may follow them. */
		source->failed = to->failed = true;
		return lost_at(from);
	}
	return RELAY_AGAIN;
}

/*
 * Takes a step as flow_step() does, through the flow's pipe, which is empty. In front of urgent data, splice()
 * reports EAGAIN or the end of the stream wrongly, so these are left to recv(). Other errors are handled here, since
 * the kernel reports them only once.
 */
static enum relay_result flow_splice(struct relay *relay, enum relay_end from, uint8_t *scratch,
				     size_t *budget)
{
	struct relay_flow *flow = &relay->flow[from];
	ssize_t got = relay_pipe_fill(flow->pipe, relay->side[from].fd, flow->chunk);
	size_t left;
	int error;

	if (got <= 0) {
		error = got < 0 ? errno : 0;
		relay_pipe_put(relay->pipes, flow->pipe);
		flow->pipe = NULL;
		if (!error || error == EAGAIN)
			return flow_step(relay, from, scratch, budget);
		errno = error;
		return read_nothing(relay, from, got);
	}
	flow_account(flow, (size_t)got, budget);
	error = flush_pipe(relay, flow, &relay->side[!from]);
	if (error < 0 && error != -EAGAIN)
		return side_fail(relay, !from);
	left = flow->pipe ? relay_pipe_len(flow->pipe) : 0;
	flow_adapt_chunk(flow, (size_t)got, (size_t)got - left);
	return RELAY_AGAIN;
}

/* Notes whether the connection has failed. SO_ERROR would also report a soft error, such as an ICMP message that TCP copes with. */
static void side_ask(struct relay_side *side)
{
	struct pollfd socket = { .fd = side->fd };

	if (poll(&socket, 1, 0) > 0 && socket.revents & POLLERR)
		side->failed = true;
	side->news = false;
}

/*
 * Tells whether a socket has failed after the end of its stream was read. A read wouldn't show what an event was about
 * then: it would report the end of the stream again.
 */
static bool side_has_failed(struct relay_side *side)
{
	if (side->readable)
		side_ask(side);
	side->readable = false;
	return side->failed;
}

/*
 * Finds a failed socket that isn't read at present, because the other one doesn't take the earlier bytes. No other
 * event would show the failure: the relay of a peer that is gone would stay until the other peer reads on.
 */
static void side_look(struct relay_side *side)
{
	if (side->news && side->readable && !side->failed)
		side_ask(side);
}

static enum relay_result flow_run(struct relay *relay, enum relay_end from, uint8_t *scratch)
{
	struct relay_flow *flow = &relay->flow[from];
	struct relay_side *source = &relay->side[from], *to = &relay->side[!from];
	size_t budget = RELAY_BUDGET;

	for (;;) {
		enum relay_result result;
		int error;

		flow_begin(relay, from, scratch);
		if (to->failed)
			return lost_at(!from);
		error = relay_flush(relay, from);
		if (error == -EAGAIN)
			return RELAY_WAIT;
		if (error < 0)
			return side_fail(relay, !from);
		if (flow->eof && side_has_failed(source))
			return lost_at(from);
		if (flow->shut)
			return RELAY_DONE;
		if (flow->eof && to->capped)
			return RELAY_WAIT;
		if (flow->eof) {
			/* When both flows have ended, close() comes next and sends the last FIN. */
			if (!relay->flow[!from].shut && shutdown(to->fd, SHUT_WR) < 0)
				return side_fail(relay, !from);
			flow->shut = true;
			return RELAY_DONE;
		}
		if (!source->readable || !to->writable || !side_room(to))
			return RELAY_WAIT;
		if (!budget)
			return RELAY_AGAIN;
		if (flow->bulk && source->tcp && relay->pipes)
			flow->pipe = relay_pipe_get(relay->pipes);
		result = flow->pipe ? flow_splice(relay, from, scratch, &budget) :
				      flow_step(relay, from, scratch, &budget);
		if (result != RELAY_AGAIN)
			return result;
	}
}

enum relay_result relay_run(struct relay *relay, uint8_t *scratch)
{
	enum relay_result up, down;

	up = flow_run(relay, RELAY_UPSTREAM, scratch);
	down = flow_run(relay, RELAY_DOWNSTREAM, scratch);
	side_look(&relay->side[RELAY_UPSTREAM]);
	side_look(&relay->side[RELAY_DOWNSTREAM]);
	/* Only the flow from a failed socket goes on, until that socket is read to its end. */
	for (int end = 0; end < RELAY_ENDS; end++)
		if (relay->side[end].failed)
			return flow_run(relay, (enum relay_end)end, scratch);
	if (up == RELAY_DONE && down == RELAY_DONE)
		return RELAY_DONE;
	return up == RELAY_AGAIN || down == RELAY_AGAIN ? RELAY_AGAIN : RELAY_WAIT;
}
