/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_requests.c - asks converters about blind requests, follows these, and lets blind_retry.c repeat lost ones */
#include "config.h"

#include "supervise/blind.h"

#include "client/client_log.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "common/netlink.h"
#include "host/survey.h"
#include "supervise/connection.h"
#include "supervise/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * --- asks a converter whether it takes blind requests, and tests whether the path takes data in SYNs ---
 *
 * When a blind request ends by a reset, the server may have refused, the path may have lost the SYN's data, or another converter may have
 * taken the address. The kernel doesn't say which. If servers refuse, ordinary connections don't find out either: a connection that carries
 * an error has no Multipath TCP. And a program's connect() would have to wait for each of them. So the supervisor asks by a connection of
 * its own, over Multipath TCP, with an Info TLV in its SYN, which the converter answers at once. It asks one converter at a time.
 */

#define ENQUIRY_LOOK_NS (5 * CLOCK_NS_PER_MS)
#define ENQUIRY_HOLDS_NS CLOCK_NS_PER_S /* how long we believe an answer, whatever happens to connections */

static struct {
	struct path_start start;
	int fd; /* not open while @begun is 0 */
	int64_t begun, look_at;
	struct {
		int converter;
		int64_t until;
	} good; /* the last answer that allows blind requests */
} enquiry;

static bool enquiry_send(int fd, const union sockaddr_ip *converter)
{
	uint8_t request[PATH_PROBE_REQUEST_MAX];
	const size_t len = path_probe_request(request);

	return len && kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) &&
	       sendto(fd, request, len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &converter->sa, sockaddr_ip_len(converter)) == (ssize_t)len;
}

bool enquiry_start(const struct path_start *start, int64_t now)
{
	const int converter = start->path.id.converter;
	const union sockaddr_ip *addr = converters_address(converter);
	int fd;

	if (enquiry.good.converter == converter && now < enquiry.good.until)
		return true;
	if (enquiry.begun)
		return enquiry.start.path.id.converter == converter;
	fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_MPTCP);
	if (fd < 0)
		return false;
	if (path_start_bind(start, fd) != 0 || !enquiry_send(fd, addr)) {
		close(fd);
		return false;
	}
	enquiry.start = *start;
	enquiry.start.survey = 0; /* the caller owns it */
	enquiry.fd = fd;
	enquiry.begun = now;
	enquiry.look_at = now + ENQUIRY_LOOK_NS;
	return true;
}

/* Takes the answer of @len bytes. Returns whether it allows blind requests. */
static bool enquiry_answered(const uint8_t *bytes, size_t len)
{
	static const struct handshake_ask ask = { .info = true };
	const struct path_id *path = &enquiry.start.path.id;
	const struct handshake_step told = handshake_on_bytes(bytes, len, converters_address(path->converter), &ask);
	const struct tcp_info info = kernel_tcp_info(enquiry.fd);
	const bool taken = info.tcpi_options & TCPI_OPT_SYN_DATA;

	if (told.verdict != HANDSHAKE_DONE || !told.has_supported)
		return false;
	converters_answered(path->converter, &told);
	if (taken || !info.tcpi_total_retrans)
		paths_note_syn_data(path, taken, enquiry.begun);
	if (!kernel_has_fallen_back(enquiry.fd))
		paths_note_mptcp(path);
	return taken && told.takes_blind && exchange_keeps_mptcp(dial_host.settings, path);
}

static void enquiry_end(bool blind, int64_t now)
{
	const int converter = enquiry.start.path.id.converter;
	char text[SOCKADDR_STRLEN];

	close(enquiry.fd);
	enquiry.begun = 0;
	enquiry.good.until = 0;
	if (blind) {
		enquiry.good.converter = converter;
		enquiry.good.until = now + ENQUIRY_HOLDS_NS;
		return;
	}
	log_line("converter %s: doesn't say that it takes blind requests, the next connections wait for it",
		 sockaddr_ip_format(converters_address(converter), text));
	converters_forget_silence(converter);
}

int64_t enquiry_look(int64_t now)
{
	uint8_t bytes[CONVERT_MESSAGE_MAX];
	ssize_t got;

	if (!enquiry.begun || now < enquiry.look_at)
		return enquiry.begun ? enquiry.look_at : 0;
	got = recv(enquiry.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	enquiry.look_at = now + ENQUIRY_LOOK_NS;
	if (got < 0 && errno == EAGAIN && now < enquiry.begun + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS)
		return enquiry.look_at;
	enquiry_end(got > 0 && enquiry_answered(bytes, (size_t)got), now);
	return 0;
}

/* --- follows blind requests --- */

/*
 * The supervisor answers the call of a blind request once the SYN is sent, and keeps no descriptor of the socket, so that the program's
 * close() takes effect at once. But if the SYN is lost, we have to send another one with the request. And if SYNs have come to lose their
 * data, on another network say, each further blind request would fail by a reset. So we ask the kernel about the connection by its
 * addresses (sock_diag(7)) a little later, and again at longer intervals until the SYN+ACK has come. blind_judge.c decides by the kernel's
 * answers:
 *
 * 	the SYN's data was acknowledged       all is well
 * 	no SYN+ACK, and the kernel is about   we make the request again, with its data, a few times
 * 	  to send a SYN without data
 * 	the data was not taken                the next connection isn't blind, and finds out more
 * 	reset after the converter has waited  the server is too slow for blind requests (blind_judge.c remembers it)
 * 	  as long as it may
 * 	no SYN+ACK in CONVERT_TIMEOUT         we probe the converter; if it doesn't answer, it has to prove itself
 * 	the connection doesn't exist          it may have been reset: after GONE_MAX of these in a row we ask the converter
 * 	                                      (enquiry_start()). Or the converter has refused: if it isn't known to serve the server, the
 * 	                                      next request for that one has a response
 * 	the same, and its program has ended   the user's next connection isn't blind
 *
 * We follow EXPECTED_MAX requests at most. The kernel alone takes care of any further ones.
 */

#define EXPECTED_MAX 4096
#define GONE_MAX 4

static struct expected {
	struct blind_request request;
	struct path_start start; /* holds the path of the last SYN */
	struct blind_retry repeat;
	struct path_probe probe; /* of the converter, once it has been silent for long */
	union sockaddr_ip local, server;
	int converter;
	int64_t look_at; /* nanoseconds of CLOCK_MONOTONIC */
	bool cancelled;  /* the socket is another connection's now */
	bool due;        /* we will make, or are making, the request again: all else waits for that */
} *expected[EXPECTED_MAX];
static int expected_count;
static int due_count;
static int64_t earliest; /* the earliest look_at; 0: none */
static int gone_in_a_row;
static struct {
	struct path_id path;
	int64_t syn_at;
} last_gone; /* of the gone_in_a_row */

static void look_later(struct expected *one, int64_t look_at)
{
	one->look_at = look_at;
	if (!earliest || look_at < earliest)
		earliest = look_at;
}

/* Returns @at, or the time of the next look at the path if that is sooner. */
static int64_t with_path(const struct expected *one, int64_t at)
{
	return one->start.look_at && one->start.look_at < at ? one->start.look_at : at;
}

static int64_t first_look(const struct expected *one, int64_t now)
{
	return with_path(one, blind_first_look(now));
}

static int64_t repeat_after(const struct expected *one)
{
	return blind_repeat_after(one->request.withheld, paths_facts_kept(&one->start.path.id).rtt_ms * CLOCK_NS_PER_MS);
}

void blind_requests_expect(struct connection *connection)
{
	uint8_t message[CONNECTION_MESSAGE_MAX];
	const struct attempt *attempt = &connection->dial.attempt;
	struct expected *one = expected_count < EXPECTED_MAX ? calloc(1, sizeof(*one)) : NULL;
	const int64_t now = clock_ns();
	const unsigned int withheld_ms = converters_withholds_ms(supervision.settings, attempt->converter);

	if (!one || !kernel_address(connection->dial.fd, &one->local)) {
		free(one);
		return;
	}
	one->request = (struct blind_request){
		.started = now,
		.syn_at = now,
		.withheld = (attempt->hold_ms ? attempt->hold_ms : withheld_ms) * CLOCK_NS_PER_MS,
	};
	one->probe.fd = -1;
	one->repeat = (struct blind_retry){ .tid = connection->call.tid, .at = connection->at, .to = attempt->addr };
	one->server = connection->dial.server;
	one->converter = attempt->converter;
	if (connection->dial.mptcp && dial_message(&connection->dial, message, sizeof(message)) >= (ssize_t)attempt->sent)
		blind_retry_note(&one->repeat, connection->dial.fd, message, attempt->sent);
	one->request.repeat_after = repeat_after(one);
	one->repeat.counted = attempt->number;
	one->request.repeatable = one->repeat.message;
	one->request.repeats_max = attempt->number ? BLIND_REPEATS_KNOWN_MAX : BLIND_REPEATS_MAX;
	one->start = connection->dial.start;
	connection->dial.start.survey = 0; /* @one owns it now: a call that has waited may have begun one */
	if (!one->request.repeatable)
		path_start_end(&one->start);
	expected[expected_count++] = one;
	look_later(one, first_look(one, now));
}

/* Asks the kernel about the connection. Returns 1 with @info set, 0 if it doesn't exist, -1 if the kernel doesn't answer. */
static int ask(const struct expected *one, struct tcp_info *info)
{
	static struct netlink netlink;
	int ret = netlink.socket ? 0 : netlink_open(&netlink, NETLINK_SOCK_DIAG);

	if (ret == 0)
		ret = netlink_find_socket(&netlink, &one->local, &one->repeat.to, info);
	return ret == 0 ? 1 : ret == -ENOENT ? 0 : -1;
}

/* Marks the request to be made again. blind_requests_made_again() takes the result. */
static void make_again(struct expected *one)
{
	one->due = true;
	due_count++;
}

static void forget(struct expected *one)
{
	path_start_end(&one->start);
	path_probe_close(&one->probe);
	free(one->repeat.message);
	for (int i = 0; i < expected_count; i++)
		if (expected[i] == one)
			expected[i] = expected[--expected_count];
	free(one);
}

/* Takes the result of an order. A request that couldn't be made again is left to the kernel. */
static void made_again(const struct blind_retry_order *order)
{
	struct expected *one = order->owner;
	char text[SOCKADDR_STRLEN];

	one->due = false;
	due_count--;
	log_about(one->repeat.tid);
	if (order->found && !one->cancelled)
		log_line("%s: %s after %.0f ms", sockaddr_ip_format(&one->server, text),
			 order->sent ? "no answer yet, asked again" : "the SYN can't be sent again",
			 (double)(order->sent_at - one->request.started) / CLOCK_NS_PER_MS);
	if (!order->sent) {
		forget(one);
		return;
	}
	one->local = order->local;
	peers_note_at(&one->local, one->repeat.cookie, &one->repeat.to, &one->server);
	one->request.repeats++;
	one->request.syn_at = order->sent_at;
	one->request.waiting_at = 0;
	one->request.repeat_after = repeat_after(one);
	path_start_sent(&one->start, order->sent_at);
	look_later(one, first_look(one, order->sent_at));
}

/* Starts to make the due requests again, unless the thread is busy. */
static void start_due(void)
{
	struct blind_retry_order orders[BLIND_RETRY_MAX];
	int count = 0;

	if (!due_count || blind_retry_is_busy())
		return;
	for (int i = 0; i < expected_count && count < BLIND_RETRY_MAX; i++) {
		struct expected *one = expected[i];

		if (one->due && !one->cancelled)
			orders[count++] = (struct blind_retry_order){
				.owner = one,
				.repeat = &one->repeat,
				.start = &one->start,
				.count = (unsigned int)one->request.repeats + 1,
			};
	}
	/* Without a thread we leave them to the kernel. */
	if (count && !blind_retry_start(orders, count))
		for (int i = 0; i < count; i++)
			made_again(&orders[i]);
}

static bool is_unanswered(void *one)
{
	struct tcp_info info;

	return ask(one, &info) > 0 && info.tcpi_state == TCPINFO_SYN_SENT;
}

/*
 * Looks for another network if the path of the SYN is dead; to the same converter, for which the request was made. Returns whether to make
 * the request again over another one.
 */
static bool path_look(struct expected *one, int64_t now)
{
	const struct converters_query query = {
		.destination = &one->server,
		.family = sockaddr_ip_is_v4(&one->repeat.to) ? AF_INET : AF_INET6,
		.tried = ~(1u << one->converter),
	};
	const struct path_start_syn syn = { SURVEY_DATA_ONLY, is_unanswered, one };
	union sockaddr_ip addr;

	return one->start.look_at && now >= one->start.look_at && path_start_look(&one->start, &query, &syn, &addr) == PATHS_MOVE;
}

static void path_answered(const struct expected *one, const struct tcp_info *info)
{
	if (info->tcpi_rtt)
		path_start_answered(&one->start, info->tcpi_rtt / 1000 + 1, false);
}

static void note_untaken(const struct expected *one)
{
	gone_in_a_row = 0;
	paths_note_syn_data(&one->start.path.id, false, one->request.syn_at);
	converters_forget_silence(one->converter);
}

static void note_slow(const struct expected *one)
{
	char text[SOCKADDR_STRLEN];

	blind_memory_note(&one->server, BLIND_TROUBLE_SLOW);
	log_about(one->repeat.tid);
	log_line("%s: answers later than the converter waits, the next connections wait for it", sockaddr_ip_format(&one->server, text));
}

/* A converter that answers the probe at once, but not this request, is waiting for its server. Doubts a converter that doesn't answer. */
static void probe_look(struct expected *one, int64_t now)
{
	if (one->probe.fd < 0 || path_probe_look(&one->probe) || path_probe_age(&one->probe, now) < BLIND_PROBE_MS)
		return;
	path_probe_close(&one->probe);
	converters_doubt(one->converter);
}

/* Looks at one request. Returns whether to look again. */
static bool request_look(struct expected *one, int64_t now)
{
	const int64_t patience = supervision.settings->timeout_ms * CLOCK_NS_PER_MS;
	struct blind_seen seen = { 0 };
	struct tcp_info info;
	const int found = ask(one, &info);
	int64_t look_at;

	if (found < 0 || one->cancelled)
		return false;
	if (found)
		seen = (struct blind_seen){
			.there = true,
			.syn_sent = info.tcpi_state == TCPINFO_SYN_SENT,
			.answered = info.tcpi_rtt,
			.taken = info.tcpi_options & TCPI_OPT_SYN_DATA,
			.again = info.tcpi_total_retrans,
		};
	probe_look(one, now);
	if (seen.syn_sent && path_look(one, now)) {
		make_again(one);
		return true;
	}
	switch (blind_judge(&one->request, &seen, now, patience, &look_at)) {
	case BLIND_OPEN:
		look_later(one, with_path(one, look_at));
		return true;
	case BLIND_REPEAT:
		make_again(one);
		return true;
	case BLIND_TAKEN:
		gone_in_a_row = 0;
		if (seen.taken) {
			paths_note_syn_data(&one->start.path.id, true, one->request.syn_at);
			converters_admitted(one->converter, &one->server);
		}
		path_answered(one, &info);
		break;
	case BLIND_UNTAKEN:
		if (!seen.there)
			note_slow(one);
		note_untaken(one);
		break;
	case BLIND_SILENT:
		if (!path_probe_send(&one->probe, &one->start.path, false))
			converters_doubt(one->converter);
		look_later(one, with_path(one, look_at));
		return true;
	case BLIND_LEFT:
		break;
	case BLIND_SLOW:
		note_slow(one);
		break;
	case BLIND_GONE:
		if (!seen.there && !converters_admits(one->converter, &one->server))
			blind_memory_note(&one->server, BLIND_TROUBLE_FAILED);
		last_gone.path = one->start.path.id;
		last_gone.syn_at = one->request.syn_at;
		if (++gone_in_a_row < GONE_MAX)
			break;
		gone_in_a_row = 0;
		if (!enquiry_start(&one->start, now))
			note_untaken(one);
		break;
	}
	return false;
}

int64_t blind_requests_look(int64_t now)
{
	if (!earliest || now < earliest)
		return earliest;
	earliest = 0;
	for (int i = 0; i < expected_count;) {
		struct expected *one = expected[i];

		if (one->due) {
			/* the thread may be using it */
		} else if (one->look_at > now) {
			look_later(one, one->look_at);
		} else if (!request_look(one, now)) {
			forget(one); /* fills its place with another one */
			continue;
		}
		i++;
	}
	start_due();
	return earliest;
}

void blind_requests_cancel(uint64_t cookie)
{
	for (int i = 0; i < expected_count; i++) {
		struct expected *one = expected[i];

		if (!one->repeat.message || one->repeat.cookie != cookie)
			continue;
		one->cancelled = true;
		if (blind_retry_cancel(one))
			continue;
		due_count -= one->due;
		one->due = false;
		look_later(one, clock_ns());
	}
}

void blind_requests_leave(void)
{
	struct tcp_info info;

	/* A path in doubt gets a request that isn't blind; if its data is taken, the doubt ends. */
	if (gone_in_a_row)
		paths_note_syn_data(&last_gone.path, false, last_gone.syn_at);
	for (int i = 0; i < expected_count; i++)
		if (!expected[i]->cancelled && ask(expected[i], &info) == 0)
			paths_note_syn_data(&expected[i]->start.path.id, false, expected[i]->request.syn_at);
}

void blind_requests_made_again(void)
{
	int count;
	const struct blind_retry_order *orders = blind_retry_end(&count);

	for (int i = 0; i < count; i++)
		made_again(&orders[i]);
	start_due();
}
