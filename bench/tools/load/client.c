/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - makes connections and requests, so many at a time, and measures them
 *
 * There are as many slots as connections at a time. A slot opens a connection, takes the steps of
 * its way, makes its requests, waits for the end of the stream (so that the port is free again: the
 * server closes first) and starts over. What fails is counted by its errno, and the slot starts
 * over as well. With --hold, connections stay open instead; with --seconds as well they have busy
 * times, in which each of them makes requests one after the other. With --over each connection has
 * a slot, which opens at the connection's own time, whatever has become of the others.
 *
 * Latency is the time from connect(), or from the sending of a later request on the same
 * connection, to the last byte of the response. Only what both began and ended within the measured
 * time is counted.
 */
#include "config.h"

#include "client.h"

#include "loop.h"
#include "tally.h"

#include <err.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_MAX   16 /* reads and writes before others have their turn */
#define STALL_NS     (20 * INT64_C(1000000000))
#define WAIT_MS      50

enum phase {
	PHASE_STEP_OUT, /* sending the bytes of a step */
	PHASE_SYNACK,   /* waiting for the SYN+ACK, which may say what the reply will */
	PHASE_STEP_IN,  /* waiting for its reply */
	PHASE_CONNECT,  /* no steps: waiting for the connection */
	PHASE_REQUEST,  /* sending a request */
	PHASE_RESPONSE, /* receiving its response */
	PHASE_HELD,     /* open and idle */
	PHASE_END,      /* waiting for the end of the stream */
	PHASE_COUNT
};

enum outcome {
	OUTCOME_GO_ON,
	OUTCOME_WAIT,   /* for an event */
	OUTCOME_CLOSED, /* as it should */
	OUTCOME_FAILED, /* slot->error says why */
};

struct slot {
	struct loop_handle handle; /* first */
	enum phase phase;
	int step;
	int error;             /* positive errno */
	unsigned int requests; /* still to be made on this connection */
	uint64_t sent;         /* bytes of the step or the request */
	uint64_t acked;        /* bytes of a large request that the other end has acknowledged */
	uint64_t received;     /* bytes of the response */
	int64_t began;         /* connect(), then each request */
	int64_t opened;        /* connect() */
	bool first;            /* no byte of any response yet */
	bool ahead;            /* the request doesn't wait for the reply to the last step */
	uint16_t partial_len;  /* a reply of which only a part is there */
	uint8_t *partial;
};

static const struct client_options *options;
static struct slot *slots;
static uint8_t scratch[PAYLOAD_CHUNK];
static uint8_t head[PAYLOAD_HEAD];
static bool busy; /* the connections held make requests until the measured time is over */
static uint64_t opened_count, running, held;
static struct tally found;

static enum outcome fail(struct slot *slot, int error)
{
	slot->error = error;
	return OUTCOME_FAILED;
}

static void enter(struct slot *slot, enum phase phase)
{
	slot->phase = phase;
	slot->sent = 0;
}

/* Returns how many bytes were sent (0: the socket takes none), or -1 with slot->error. */
static ssize_t slot_send(struct slot *slot, const uint8_t *data, size_t len)
{
	ssize_t put = send(slot->handle.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (put < (ssize_t)len)
		slot->handle.writable = false;
	if (put < 0 && errno != EAGAIN) {
		slot->error = errno;
		return -1;
	}
	return put < 0 ? 0 : put;
}

/* Returns bytes received into the scratch buffer, 0 at the end of the stream, -EAGAIN, or -1 with
 * slot->error. */
static ssize_t slot_receive(struct slot *slot)
{
	ssize_t got = recv(slot->handle.fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	if (got < (ssize_t)sizeof(scratch))
		slot->handle.readable = slot->handle.hung && got > 0;
	if (got < 0 && errno != EAGAIN) {
		slot->error = errno;
		return -1;
	}
	return got < 0 ? -EAGAIN : got;
}

static void stream_is_open(struct slot *slot)
{
	if (tally_measures(&found, slot->opened, loop_now()))
		samples_add(&found.connected, loop_now() - slot->opened);
}

static void response_is_there(struct slot *slot)
{
	int64_t now = loop_now();

	if (options->payload.request > PAYLOAD_CHUNK) {
		tally_bytes(&found, (size_t)(options->payload.request - slot->acked));
		slot->acked = 0;
	}
	if (tally_measures(&found, slot->began, now)) {
		samples_add(&found.latency, now - slot->began);
		found.requests++;
	}
	slot->received = 0;
	slot->began = now;
	slot->requests--;
	if (busy && now < found.to)
		slot->requests++;
	if (slot->requests) {
		enter(slot, PHASE_REQUEST);
	} else if (options->hold) {
		enter(slot, PHASE_HELD);
		held++;
	} else {
		enter(slot, PHASE_END);
		if (!options->payload.close)
			shutdown(slot->handle.fd, SHUT_WR);
	}
}

/* Takes bytes of the stream that are behind the replies to all steps. */
static enum outcome take_response(struct slot *slot, const uint8_t *data, size_t len)
{
	uint64_t left = options->payload.response - slot->received;

	if (len > left)
		return fail(slot, EPROTO);
	if (options->verify && !payload_matches(data, len, slot->received))
		errx(1, "wrong bytes in a response, behind byte %llu",
		     (unsigned long long)slot->received);
	if (len && slot->first) {
		slot->first = false;
		if (tally_measures(&found, slot->opened, loop_now()))
			samples_add(&found.first_byte, loop_now() - slot->opened);
	}
	slot->received += len;
	tally_bytes(&found, len);
	if (slot->received == options->payload.response)
		response_is_there(slot);
	return OUTCOME_GO_ON;
}

static enum outcome run_step_out(struct slot *slot)
{
	const struct way_step *step = &options->way.step[slot->step];
	ssize_t put;

	if (!slot->handle.writable)
		return OUTCOME_WAIT;
	put = slot_send(slot, step->bytes + slot->sent, step->size - slot->sent);
	if (put < 0)
		return OUTCOME_FAILED;
	slot->sent += (uint64_t)put;
	if (slot->sent == step->size)
		enter(slot, slot->ahead && slot->step == options->way.steps - 1 ? PHASE_REQUEST
										: PHASE_STEP_IN);
	return OUTCOME_GO_ON;
}

/* Does the SYN+ACK say that the server was reached? See doc/private-tlvs.md. */
static bool synack_confirms(int fd)
{
	const int confirmed = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && (info.tcpi_options & confirmed) == confirmed;
}

/* No reply follows what is confirmed; where it isn't, one does. */
static enum outcome run_synack_silent(struct slot *slot)
{
	if (!synack_confirms(slot->handle.fd)) {
		enter(slot, PHASE_STEP_IN);
		return OUTCOME_GO_ON;
	}
	slot->step = options->way.steps;
	stream_is_open(slot);
	enter(slot, slot->ahead ? PHASE_RESPONSE : PHASE_REQUEST);
	if (slot->ahead && options->payload.response == 0)
		response_is_there(slot);
	return OUTCOME_GO_ON;
}

/* Does as libconvert.so: reads the reply if it is there, and asks the kernel about the SYN+ACK otherwise. */
static enum outcome run_synack(struct slot *slot)
{
	if (!slot->handle.readable && !slot->handle.writable)
		return OUTCOME_WAIT;
	if (options->way.silent)
		return run_synack_silent(slot);
	slot->ahead = !slot->handle.readable && synack_confirms(slot->handle.fd);
	if (slot->ahead)
		stream_is_open(slot);
	enter(slot, slot->ahead ? PHASE_REQUEST : PHASE_STEP_IN);
	return OUTCOME_GO_ON;
}

static void partial_keep(struct slot *slot, size_t len)
{
	slot->partial = realloc(slot->partial, slot->partial_len + len);
	if (!slot->partial)
		errx(1, "no memory");
	memcpy(slot->partial + slot->partial_len, scratch, len);
	slot->partial_len = (uint16_t)(slot->partial_len + len);
}

static void partial_drop(struct slot *slot)
{
	free(slot->partial);
	slot->partial = NULL;
	slot->partial_len = 0;
}

static enum outcome run_step_in(struct slot *slot)
{
	const struct way_step *step = &options->way.step[slot->step];
	ssize_t got, size;

	if (!slot->handle.readable)
		return OUTCOME_WAIT;
	got = slot_receive(slot);
	if (got == -EAGAIN)
		return OUTCOME_WAIT;
	if (got <= 0)
		return got < 0 ? OUTCOME_FAILED : fail(slot, ECONNABORTED);
	found.last_progress = loop_now();
	if (slot->partial_len) { /* rare: put what is new behind it, and both back */
		partial_keep(slot, (size_t)got);
		got = slot->partial_len;
		memcpy(scratch, slot->partial, (size_t)got);
		partial_drop(slot);
	}
	size = step->reply(scratch, (size_t)got, &options->way.server);
	if (size < 0)
		return fail(slot, (int)-size);
	if (size == 0) {
		partial_keep(slot, (size_t)got);
		return OUTCOME_GO_ON;
	}
	if (++slot->step < options->way.steps) {
		enter(slot, PHASE_STEP_OUT);
		return got == size ? OUTCOME_GO_ON : fail(slot, EPROTO);
	}
	if (!slot->ahead || options->early)
		stream_is_open(slot);
	enter(slot, slot->ahead ? PHASE_RESPONSE : PHASE_REQUEST);
	/* of a request that went ahead, an empty response is there as well */
	return got == size && !slot->ahead
		       ? OUTCOME_GO_ON
		       : take_response(slot, scratch + size, (size_t)(got - size));
}

static enum outcome run_connect(struct slot *slot)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (!slot->handle.writable)
		return OUTCOME_WAIT;
	if (getsockopt(slot->handle.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
		return fail(slot, error);
	stream_is_open(slot);
	enter(slot, PHASE_REQUEST);
	return OUTCOME_GO_ON;
}

/* Counts how much of a large request has left the send buffer, which may be much less than was written. */
static void count_acknowledged(struct slot *slot)
{
	int unsent = 0;
	uint64_t acked;

	if (options->payload.request <= PAYLOAD_CHUNK ||
	    ioctl(slot->handle.fd, SIOCOUTQ, &unsent) < 0 || (uint64_t)unsent > slot->sent)
		return;
	acked = slot->sent - (uint64_t)unsent;
	if (acked > slot->acked) {
		tally_bytes(&found, (size_t)(acked - slot->acked));
		slot->acked = acked;
	}
}

static enum outcome run_request(struct slot *slot)
{
	uint64_t left = options->payload.request - slot->sent;
	bool in_head = slot->sent < PAYLOAD_HEAD;
	uint8_t small[512];
	size_t piece = payload_chunk(left);
	const uint8_t *data = payload_at(slot->sent);
	ssize_t put;

	if (!slot->handle.writable)
		return OUTCOME_WAIT;
	if (in_head) { /* the head and the bytes behind it in one packet */
		if (piece > sizeof(small))
			piece = sizeof(small);
		memcpy(small, data, piece);
		if (slot->sent == 0)
			memcpy(small, head, PAYLOAD_HEAD);
		data = small;
	}
	put = slot_send(slot, data, piece);
	if (put < 0)
		return OUTCOME_FAILED;
	if (in_head && put < (ssize_t)PAYLOAD_HEAD && put > 0)
		errx(1, "a socket that takes %zd bytes", put);
	slot->sent += (uint64_t)put;
	count_acknowledged(slot);
	if (slot->sent == options->payload.request) {
		bool waits = slot->ahead && slot->step < options->way.steps;

		enter(slot, waits ? PHASE_STEP_IN : PHASE_RESPONSE);
		if (!waits && options->payload.response == 0)
			response_is_there(slot);
	}
	return OUTCOME_GO_ON;
}

static enum outcome run_response(struct slot *slot)
{
	ssize_t got;

	if (!slot->handle.readable)
		return OUTCOME_WAIT;
	got = slot_receive(slot);
	if (got == -EAGAIN)
		return OUTCOME_WAIT;
	if (got <= 0)
		return got < 0 ? OUTCOME_FAILED : fail(slot, ECONNABORTED);
	return take_response(slot, scratch, (size_t)got);
}

/* Expects the end of the stream and nothing else. */
static enum outcome run_end(struct slot *slot)
{
	ssize_t got;

	if (!slot->handle.readable)
		return OUTCOME_WAIT;
	got = slot_receive(slot);
	if (got == -EAGAIN)
		return OUTCOME_WAIT;
	if (got != 0)
		return got < 0 ? OUTCOME_FAILED : fail(slot, EPROTO);
	return slot->phase == PHASE_HELD ? fail(slot, ECONNABORTED) : OUTCOME_CLOSED;
}

static enum outcome (*const phases[])(struct slot *slot) = {
	[PHASE_STEP_OUT] = run_step_out, [PHASE_SYNACK] = run_synack,
	[PHASE_STEP_IN] = run_step_in,   [PHASE_CONNECT] = run_connect,
	[PHASE_REQUEST] = run_request,   [PHASE_RESPONSE] = run_response,
	[PHASE_HELD] = run_end,          [PHASE_END] = run_end,
};
_Static_assert(sizeof(phases) / sizeof(phases[0]) == PHASE_COUNT, "a function for each phase");

static void slot_open(struct slot *slot);

/* Ends the connection and opens the next one. */
static void slot_end(struct slot *slot, enum outcome outcome)
{
	int64_t now = loop_now();

	found.last_progress = now;
	partial_drop(slot);
	loop_close(&slot->handle);
	running--;
	if (outcome == OUTCOME_FAILED) {
		if (slot->phase == PHASE_HELD)
			held--;
		tally_failure(&found, slot->error);
	} else if (tally_measures(&found, slot->opened, now)) {
		found.connections++;
	}
	if (!options->over_ns)
		slot_open(slot);
}

static void slot_run(struct loop_handle *handle)
{
	struct slot *slot = (struct slot *)handle;
	enum outcome outcome = OUTCOME_GO_ON;

	for (int round = 0; round < ROUNDS_MAX && outcome == OUTCOME_GO_ON; round++)
		outcome = phases[slot->phase](slot);
	if (outcome == OUTCOME_GO_ON)
		loop_again(handle);
	else if (outcome != OUTCOME_WAIT)
		slot_end(slot, outcome);
}

/* Puts the first step, and the request behind it if it is early, into the SYN. Returns bytes sent,
 * or -1. */
static ssize_t send_in_syn(int fd, size_t *size)
{
	const struct way_step *step = &options->way.step[0];
	uint8_t bytes[sizeof(step->bytes) + CLIENT_EARLY_MAX];
	size_t early = options->early ? (size_t)options->payload.request : 0;
	int on = 1;

	memcpy(bytes, step->bytes, step->size);
	memcpy(bytes + step->size, payload_at(0), early);
	memcpy(bytes + step->size, head, early ? PAYLOAD_HEAD : 0);
	*size = step->size + early;
	setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on));
	return sendto(fd, bytes, *size, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &options->to.sa,
		      sockaddr_ip_len(&options->to));
}

static void slot_start(struct slot *slot)
{
	size_t size;
	ssize_t sent;

	slot->phase = options->way.steps ? PHASE_STEP_OUT : PHASE_CONNECT;
	if (!options->way.in_syn) {
		if (connect(slot->handle.fd, &options->to.sa, sockaddr_ip_len(&options->to)) < 0 &&
		    errno != EINPROGRESS)
			slot->error = errno;
		return;
	}
	sent = send_in_syn(slot->handle.fd, &size);
	if (sent < 0 && errno != EINPROGRESS) {
		slot->error = errno;
	} else if (sent > 0) {
		slot->phase = options->way.silent || (options->withheld && !slot->ahead) ? PHASE_SYNACK : PHASE_STEP_IN;
		if ((size_t)sent != size)
			errx(1, "a SYN that takes %zd bytes only", sent);
	}
}

/* Opens the next connection, if there is to be one. */
static void slot_open(struct slot *slot)
{
	static const int on = 1;
	int64_t now = loop_now();

	if ((options->connections && opened_count >= options->connections) ||
	    (options->duration_ns && now >= found.to))
		return;
	*slot = (struct slot){
		.first = true, .ahead = options->early, .requests = options->requests,
		.began = now, .opened = now
	};
	slot->handle.run = slot_run;
	slot->handle.fd =
		socket(options->to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       options->mptcp ? IPPROTO_MPTCP : 0);
	if (slot->handle.fd < 0)
		err(1, "socket");
	if (options->no_delay && setsockopt(slot->handle.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		err(1, "TCP_NODELAY");
	if (options->from.sa.sa_family != AF_UNSPEC &&
	    bind(slot->handle.fd, &options->from.sa, sockaddr_ip_len(&options->from)) < 0)
		err(1, "bind");
	opened_count++;
	running++;
	slot_start(slot);
	loop_add(&slot->handle);
	if (slot->error) { /* not from here: it would open the next one, and that the next */
		slot->phase = PHASE_CONNECT;
		loop_again(&slot->handle);
	}
}

/* With --over: opens the connections whose time has come. Returns ms until the next one's. */
static int open_due(void)
{
	while (options->over_ns && opened_count < options->connections) {
		int64_t interval = options->over_ns / (int64_t)options->connections;
		int64_t left = found.start + (int64_t)opened_count * interval - loop_now();

		if (left > 0)
			return (int)(left / 1000000) + 1;
		slot_open(&slots[opened_count]);
	}
	return WAIT_MS;
}

static bool is_over(void)
{
	return options->duration_ns ? loop_now() >= found.to
				    : running == 0 && opened_count >= options->connections;
}

static bool is_stalled(void)
{
	if (loop_now() - found.last_progress <= STALL_NS)
		return false;
	warnx("nothing has happened for %d s; %llu connections are unfinished",
	      (int)(STALL_NS / 1000000000), (unsigned long long)running);
	return true;
}

/*
 * Has all connections held make requests for the measured time. It ends when each has received its
 * last response, so that what others have worked meanwhile belongs to bytes_all, and to nothing
 * else. Returns -1 if that doesn't happen.
 */
static int be_busy(void)
{
	tally_begin(&found, options->warmup_ns, options->duration_ns);
	busy = true;
	for (uint64_t i = 0; i < options->connections; i++) {
		struct slot *slot = &slots[i];

		if (slot->handle.fd < 0 || slot->phase != PHASE_HELD)
			continue;
		held--;
		slot->requests = 1;
		slot->began = found.start;
		enter(slot, PHASE_REQUEST);
		loop_again(&slot->handle);
	}
	while (running > held || loop_now() < found.to) {
		loop_once(WAIT_MS);
		if (is_stalled())
			break;
	}
	busy = false;
	tally_print(&found, loop_now(), opened_count, running);
	return running > held ? -1 : 0;
}

/*
 * Reports that all connections are open and idle, and waits for the end of the standard input. If
 * there is to be a busy time, each byte there begins one. Returns -1 if that has not ended.
 */
static int hold(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;

	printf("held %llu\n", (unsigned long long)held);
	fflush(stdout);
	for (;;) {
		loop_once(WAIT_MS);
		if (poll(&input, 1, 0) <= 0)
			continue;
		if (read(STDIN_FILENO, &byte, 1) <= 0)
			return 0;
		if (options->duration_ns && be_busy() < 0)
			return -1;
	}
}

int client_run(const struct client_options *wanted)
{
	options = wanted;
	payload_init();
	payload_head_write(head, &options->payload);
	loop_init();
	slots = calloc(options->hold || options->over_ns ? options->connections : options->concurrency, sizeof(*slots));
	if (!slots)
		errx(1, "no memory");
	tally_init(&found, options->timeline_ns);
	tally_begin(&found, options->warmup_ns, options->hold ? 0 : options->duration_ns);
	for (unsigned int i = 0; !options->hold && !options->over_ns && i < options->concurrency; i++)
		slot_open(&slots[i]);
	while (!is_over()) {
		/* those to be held have a slot each, and are opened so many at a time */
		while (options->hold && opened_count < options->connections &&
		       running - held < options->concurrency)
			slot_open(&slots[opened_count]);
		if (options->hold && held == options->connections) {
			if (hold() < 0)
				return 1;
			break;
		}
		loop_once(open_due());
		if (is_stalled()) {
			tally_print(&found, loop_now(), opened_count, running);
			return 1;
		}
	}
	tally_print(&found, loop_now(), opened_count, running);
	return 0;
}
