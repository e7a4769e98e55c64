/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c - from one convertd to the next: its sockets, and at which moment which of them serves
 *
 * The problem. Sessions last, and a restart isn't to cut them; so the old process goes on with those that
 * it has. If the new one only starts when the old one has ended, new clients are refused meanwhile, or, with
 * listening sockets that the service manager keeps, their SYNs are answered and nobody serves them: no
 * time-out and no other converter helps against that. So both run at the same time, and at each moment one
 * of them accepts.
 *
 * The conversation. Who serves has a Unix socket in the abstract namespace, which is the network namespace's,
 * for each place that it listens at: "convertd/[::]:1234". A convertd that starts asks there, each side having
 * seen that the other one is its own user's or root's:
 *
 *     new                                   old
 *      ASK, or REPLACE ───────────────────>  REPLACE: accepts nobody any more (pause)
 *      <─ LISTENER, METRICS, RULES, … DONE   each with a descriptor; or REFUSED
 *      starts, as ever, with those sockets
 *      SERVING ───────────────────────────>  ends with its last session
 *      <───────────────────────────── DONE   its names are free
 *
 * Where the new one fails before it serves, the conversation ends without that word, and the old one accepts
 * again. In between clients wait in the sockets' queues, for some milliseconds. ASK is for one that is to
 * find its place free, as ever: only an old one that is stopping gives something then, its sockets for
 * HTTP and its rules, which it has no more use for.
 *
 * A service manager's restart is a stop and a start: it asks the old main process to end before there is a
 * new one. If it keeps descriptors for that one, the main process does end, at once, and the serving process goes
 * on as if nothing had happened, until the new one takes over. What tells it that there won't be one is the
 * lifeline: a pair of sockets, of which the manager keeps one end. The manager closes what it keeps when
 * the service is stopped for good, or has failed for good; and at once if it keeps nothing. Each start that fails
 * has written a byte into it before: with a configuration that is wrong the old process serves until that
 * is mended. PATIENCE_MS without a start is for managers that wait for all processes of the service
 * (KillMode=control-group): they won't start another one before this one has ended.
 */
#include "config.h"

#include "convertd/process/handover.h"

#include "convertd/base/fdpass.h"
#include "convertd/base/log.h"
#include "convertd/config/settings.h"
#include "convertd/process/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Milliseconds that the old process waits for somebody to start another convertd, or to try; see above. */
#define PATIENCE_MS 20000

/* Milliseconds that each side waits for the other side's next message. */
#define ANSWER_MS 5000

#define PLACES_MAX (LISTEN_ADDRESSES_MAX + METRICS_ADDRESSES_MAX)
#define BACKLOG 8

enum word {
	WORD_ASK = HANDOVER_KIND_COUNT, /* below: a descriptor */
	WORD_REPLACE,
	WORD_DONE,
	WORD_REFUSED,
	WORD_SERVING,
};

struct message {
	uint32_t word;
};

/* What this process is to another convertd that asks; see the conversation above. */
enum stage {
	STAGE_SERVING,  /* it accepts clients */
	STAGE_PAUSED,   /* it accepts nobody until the conversation has ended; then it serves again, or has been replaced */
	STAGE_DRAINING, /* it is stopping, and has only its sockets for HTTP and its rules to give */
	STAGE_OVER,     /* another convertd serves with its sockets */
};

struct offer {
	int fd;
	struct event *event;
};

struct handover {
	struct event_base *base;
	const struct handover_duties *duties;
	void *arg;
	enum stage stage;
	struct offer offers[PLACES_MAX];
	size_t offer_count;
	int conversation; /* -1: none */
	struct event *word;
	int lifeline; /* our end; -1: nobody keeps the other one */
	struct event *pulse;
	struct event *patience; /* pending: the main process has ended */
	bool left;
};

/* ----- the names by which a serving convertd is found ----- */

static size_t place_count(const struct settings *settings)
{
	return settings->listen_count + settings->metrics_count;
}

/* The name of a place in the abstract namespace. Returns its length, or 0 for one that is too long. */
static socklen_t place_address(const struct settings *settings, size_t number,
			       struct sockaddr_un *address)
{
	char text[METRICS_ADDRESS_STRLEN + LISTEN_ADDRESS_STRLEN];
	int len;

	if (number < settings->listen_count)
		listen_address_format(&settings->listen[number], text);
	else
		metrics_address_format(&settings->metrics[number - settings->listen_count], text);
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "convertd/%s", text);
	if (len < 0 || (size_t)len >= sizeof(address->sun_path) - 1)
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Is the other side a process of root's or of our own user's? Nobody else may decide who serves, or give us sockets. */
static bool peer_is_ours(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static bool say(int fd, enum word word)
{
	struct message message = { .word = word };

	return fdpass_send(fd, &message, sizeof(message), -1) == (ssize_t)sizeof(message);
}

/* ----- the convertd that serves ----- */

static void end_conversation(struct handover *handover)
{
	if (handover->word)
		event_free(handover->word);
	handover->word = NULL;
	if (handover->conversation >= 0)
		close(handover->conversation);
	handover->conversation = -1;
}

static void withdraw(struct handover *handover)
{
	for (size_t i = 0; i < handover->offer_count; i++) {
		event_free(handover->offers[i].event);
		close(handover->offers[i].fd);
	}
	handover->offer_count = 0;
}

static void let_go_of_lifeline(struct handover *handover)
{
	if (handover->pulse)
		event_free(handover->pulse);
	if (handover->lifeline >= 0)
		close(handover->lifeline);
	handover->pulse = NULL;
	handover->lifeline = -1;
}

static void end(struct handover *handover, enum stage stage, const char *reason)
{
	handover->stage = stage;
	evtimer_del(handover->patience);
	let_go_of_lifeline(handover);
	handover->duties->end(handover->arg, stage == STAGE_OVER, reason);
}

static void on_replace(struct handover *handover, bool replace)
{
	bool listeners = handover->stage == STAGE_SERVING;

	if (listeners && !replace) {
		say(handover->conversation, WORD_REFUSED);
		return;
	}
	if (listeners) {
		handover->stage = STAGE_PAUSED;
		handover->duties->pause(handover->arg);
	}
	handover->duties->give(handover->arg, handover, listeners);
	say(handover->conversation, WORD_DONE);
}

static void on_word(evutil_socket_t fd, short what, void *arg)
{
	struct handover *handover = arg;
	struct message message;
	int passed;
	ssize_t len = fdpass_receive(fd, &message, sizeof(message), false, &passed);

	(void)what;
	if (passed >= 0)
		close(passed);
	if (len == -EAGAIN)
		return;
	if (len == (ssize_t)sizeof(message) &&
	    (message.word == WORD_ASK || message.word == WORD_REPLACE)) {
		on_replace(handover, message.word == WORD_REPLACE);
		return;
	}
	if (len == (ssize_t)sizeof(message) && message.word == WORD_SERVING &&
	    handover->stage != STAGE_SERVING) {
		withdraw(handover);
		end(handover, STAGE_OVER, "another convertd serves");
		say(fd, WORD_DONE);
	} else if (handover->stage == STAGE_PAUSED) {
		log_warning("another convertd was to take over and hasn't: this one goes on");
		handover->stage = STAGE_SERVING;
		handover->duties->resume(handover->arg);
	}
	end_conversation(handover);
}

static void on_offer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval wait = { .tv_sec = ANSWER_MS / 1000 };
	struct handover *handover = arg;
	int asking = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	if (asking < 0)
		return;
	if (handover->conversation >= 0 || !peer_is_ours(asking)) {
		close(asking);
		return;
	}
	/* As a rule all messages fit into the socket's buffer; a peer that doesn't read mustn't stop the main thread. */
	setsockopt(asking, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	handover->conversation = asking;
	handover->word = event_new(handover->base, asking, EV_READ | EV_PERSIST, on_word, handover);
	if (!handover->word || event_add(handover->word, NULL) < 0)
		end_conversation(handover);
}

void handover_give(struct handover *handover, enum handover_kind kind, int fd)
{
	struct message message = { .word = kind };

	if (fdpass_send(handover->conversation, &message, sizeof(message), fd) < 0)
		log_debug("a socket isn't handed over");
}

/* Returns 0 or -errno. */
static int offer(struct handover *handover, const struct sockaddr_un *address, socklen_t len)
{
	struct offer *offer = &handover->offers[handover->offer_count];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd < 0)
		return -errno;
	offer->event = NULL;
	if (bind(fd, (const struct sockaddr *)address, len) < 0 || listen(fd, BACKLOG) < 0) {
		error = -errno;
	} else {
		offer->event = event_new(handover->base, fd, EV_READ | EV_PERSIST, on_offer, handover);
		error = offer->event && event_add(offer->event, NULL) == 0 ? 0 : -ENOMEM;
	}
	offer->fd = fd;
	handover->offer_count += !error;
	if (error && offer->event)
		event_free(offer->event);
	if (error)
		close(fd);
	return error;
}

void handover_offer(struct handover *handover, const struct settings *settings)
{
	withdraw(handover);
	for (size_t i = 0; i < place_count(settings); i++) {
		struct sockaddr_un address;
		socklen_t len = place_address(settings, i, &address);
		int error = len ? offer(handover, &address, len) : -ENAMETOOLONG;

		if (error)
			log_debug("another convertd can't take over by \"%s\": %s",
				  address.sun_path + 1, strerror(-error));
	}
}

/* ----- a restart by the service manager ----- */

static void be_patient(struct handover *handover)
{
	static const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };

	evtimer_add(handover->patience, &patience);
}

static void on_impatience(evutil_socket_t fd, short what, void *arg)
{
	struct handover *handover = arg;

	(void)fd;
	(void)what;
	if (handover->stage == STAGE_PAUSED)
		be_patient(handover);
	else
		end(handover, STAGE_DRAINING, "no other convertd was started");
}

static void on_pulse(evutil_socket_t fd, short what, void *arg)
{
	struct handover *handover = arg;
	char byte;

	(void)what;
	if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) != 0) {
		if (handover->left)
			be_patient(handover);
		return;
	}
	let_go_of_lifeline(handover);
	if (handover->left && handover->stage == STAGE_SERVING)
		end(handover, STAGE_DRAINING, "the service is stopped");
}

void handover_keep_lifeline(struct handover *handover)
{
	int ends[2];

	let_go_of_lifeline(handover);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	notify_send("FDSTOREREMOVE=1\nFDNAME=" NOTIFY_LIFELINE_NAME);
	notify_keep_lifeline(ends[1], NOTIFY_LIFELINE_NAME);
	close(ends[1]);
	handover->lifeline = ends[0];
	handover->pulse = event_new(handover->base, ends[0], EV_READ | EV_PERSIST, on_pulse, handover);
	if (!handover->pulse || event_add(handover->pulse, NULL) < 0)
		let_go_of_lifeline(handover);
}

bool handover_is_expected(const struct handover *handover)
{
	char byte;

	return handover->lifeline >= 0 && handover->stage < STAGE_DRAINING &&
	       recv(handover->lifeline, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK) != 0;
}

void handover_await(struct handover *handover)
{
	handover->left = true;
	be_patient(handover);
}

void handover_set_draining(struct handover *handover)
{
	if (handover->stage < STAGE_DRAINING)
		handover->stage = STAGE_DRAINING;
	let_go_of_lifeline(handover);
}

struct handover *handover_create(struct event_base *base, const struct handover_duties *duties,
				 void *arg)
{
	struct handover *handover = calloc(1, sizeof(*handover));

	if (!handover)
		return NULL;
	handover->base = base;
	handover->duties = duties;
	handover->arg = arg;
	handover->conversation = handover->lifeline = -1;
	handover->patience = evtimer_new(base, on_impatience, handover);
	if (handover->patience)
		return handover;
	free(handover);
	return NULL;
}

void handover_destroy(struct handover *handover)
{
	if (!handover)
		return;
	withdraw(handover);
	end_conversation(handover);
	let_go_of_lifeline(handover);
	event_free(handover->patience);
	free(handover);
}

/* ----- the one that starts ----- */

/* Waits for the next message, with its descriptor or -1. Returns false at the end of the conversation. */
static bool hear(int fd, struct message *message, int *passed)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int ready;

	do
		ready = poll(&wait, 1, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	*passed = -1;
	return ready > 0 && fdpass_receive(fd, message, sizeof(*message), false, passed) ==
				    (ssize_t)sizeof(*message);
}

/* Passes each descriptor to @take. Returns whether the other side has given all that it has (DONE). */
static bool hear_all(int fd, void (*take)(void *arg, enum handover_kind kind, int fd), void *arg)
{
	struct message message;
	int passed;

	while (hear(fd, &message, &passed)) {
		if (passed >= 0 && message.word < HANDOVER_KIND_COUNT)
			take(arg, (enum handover_kind)message.word, passed);
		else if (passed >= 0)
			close(passed);
		else
			return message.word == WORD_DONE;
	}
	return false;
}

/* A connection to who serves at that place, or -1. */
static int find(const struct settings *settings, size_t number)
{
	struct sockaddr_un address;
	socklen_t len = place_address(settings, number, &address);
	int fd = len ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, len) == 0 && peer_is_ours(fd))
		return fd;
	close(fd);
	return -1;
}

int handover_ask(const struct settings *settings, bool replace,
		 void (*take)(void *arg, enum handover_kind kind, int fd), void *arg)
{
	int fd = -1;

	for (size_t i = 0; i < place_count(settings) && fd < 0; i++)
		fd = find(settings, i);
	if (fd < 0)
		return -1;
	if (say(fd, replace ? WORD_REPLACE : WORD_ASK) && hear_all(fd, take, arg))
		return fd;
	close(fd);
	return -1;
}

void handover_confirm(int conversation)
{
	struct message message;
	int passed;

	if (conversation < 0)
		return;
	if (say(conversation, WORD_SERVING) && hear(conversation, &message, &passed) && passed >= 0)
		close(passed);
	close(conversation);
}

bool handover_touch(int lifeline)
{
	return lifeline >= 0 && send(lifeline, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}
