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
 * taken the address. The kernel doesn't say which. Ordinary connections don't show it: one that carries a server's refusal has no
 * Multipath TCP, and its connect() has to wait. So the supervisor asks by a connection of its own, over Multipath TCP, with an Info TLV in
 * its SYN, which the converter answers at once. It asks one converter at a time.
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
	return taken && told.withholding.blind && exchange_keeps_mptcp(dial_host.settings, path);
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
	log_line("converter %s: hasn't confirmed that blind requests work; the next connections wait for its response",
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
 * 	                                      next request for that server asks for a response
 * 	the same, and its program has ended   the user's next connection isn't blind
 *
 * We follow EXPECTED_MAX requests at most. The kernel alone takes care of any further ones.
 */

#define EXPECTED_MAX 4096
#define GONE_MAX 4

static struct expected {
	struct blind_request request;
	struct path_start start; /* holds the path of the last SYN */
	struct blind_retry retry;
	struct path_probe probe; /* of the converter, once it has been silent for long */
	union sockaddr_ip local, server;
	int device; /* index of the interface that the socket is bound to; 0: none */
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

static void look_later(struct expected *entry, int64_t look_at)
{
	entry->look_at = look_at;
	if (!earliest || look_at < earliest)
		earliest = look_at;
}

/* Returns @at, or the time of the next look at the path if that is sooner. */
static int64_t with_path(const struct expected *entry, int64_t at)
{
	return entry->start.look_at && entry->start.look_at < at ? entry->start.look_at : at;
}

static int64_t first_look(const struct expected *entry, int64_t now)
{
	return with_path(entry, blind_first_look(now));
}

static int64_t repeat_after(const struct expected *entry)
{
	return blind_repeat_after(entry->request.withheld, paths_facts_kept(&entry->start.path.id).rtt_ms * CLOCK_NS_PER_MS);
}

void blind_requests_expect(struct connection *connection)
{
	uint8_t message[CONNECTION_MESSAGE_MAX];
	const struct attempt *attempt = &connection->dial.attempt;
	struct expected *entry = expected_count < EXPECTED_MAX ? calloc(1, sizeof(*entry)) : NULL;
	const int64_t syn_at = connection->dial.start.syn_at;
	const unsigned int withheld_ms = converters_withholds_ms(supervision.settings, attempt->converter);

	if (!entry || !kernel_address(connection->dial.fd, &entry->local)) {
		free(entry);
		return;
	}
	entry->request = (struct blind_request){
		.started = syn_at,
		.syn_at = syn_at,
		.withheld = (attempt->ask.hold_ms ? attempt->ask.hold_ms : withheld_ms) * CLOCK_NS_PER_MS,
	};
	entry->probe.fd = -1;
	entry->retry = (struct blind_retry){ .tid = connection->call.tid, .program_fd = connection->program_fd, .to = attempt->addr };
	entry->device = kernel_get(connection->dial.fd, SOL_SOCKET, SO_BINDTOIFINDEX, 0);
	entry->server = connection->dial.server;
	entry->converter = attempt->converter;
	if (connection->dial.mptcp && dial_message(&connection->dial, message, sizeof(message)) >= (ssize_t)attempt->sent)
		blind_retry_note(&entry->retry, connection->dial.fd, message, attempt->sent);
	entry->request.repeat_after = repeat_after(entry);
	entry->retry.counted = attempt->ask.attempt;
	entry->request.repeatable = entry->retry.message;
	entry->request.repeats_max = attempt->ask.attempt ? BLIND_REPEATS_KNOWN_MAX : BLIND_REPEATS_MAX;
	entry->start = connection->dial.start;
	connection->dial.start.survey = 0; /* @entry owns the survey now, which a call that has waited may have begun */
	if (!entry->request.repeatable)
		path_start_end(&entry->start);
	expected[expected_count++] = entry;
	look_later(entry, first_look(entry, syn_at));
}

/* Asks the kernel about the connection. Returns 1 with @info set, 0 if it doesn't exist, -1 if the kernel doesn't answer. */
static int ask(const struct expected *entry, struct tcp_info *info)
{
	static struct netlink netlink;
	int ret = netlink.socket ? 0 : netlink_open(&netlink, NETLINK_SOCK_DIAG);

	if (ret == 0)
		ret = netlink_find_socket(&netlink, &entry->local, &entry->retry.to, entry->device, info);
	return ret == 0 ? 1 : ret == -ENOENT ? 0 : -1;
}

/* Marks the request to be made again. blind_requests_take_results() takes the result. */
static void mark_due(struct expected *entry)
{
	entry->due = true;
	due_count++;
}

static void forget_request(struct expected *entry)
{
	path_start_end(&entry->start);
	path_probe_close(&entry->probe);
	free(entry->retry.message);
	for (int i = 0; i < expected_count; i++)
		if (expected[i] == entry)
			expected[i] = expected[--expected_count];
	free(entry);
}

/* Takes the result of an order. Follows a request no longer if it couldn't be made again. */
static void take_result(const struct blind_retry_order *order)
{
	struct expected *entry = order->owner;
	char text[SOCKADDR_STRLEN];

	entry->due = false;
	due_count--;
	log_about(entry->retry.tid);
	if (order->found && !entry->cancelled)
		log_line("%s: %s after %.0f ms", sockaddr_ip_format(&entry->server, text),
			 order->sent ? "no answer yet, asked again" : "the SYN can't be sent again",
			 (double)(order->sent_at - entry->request.started) / CLOCK_NS_PER_MS);
	if (!order->sent) {
		forget_request(entry);
		return;
	}
	entry->local = order->local;
	entry->device = order->device;
	peers_note_at(&entry->local, entry->retry.cookie, &entry->retry.to, &entry->server);
	entry->request.repeats++;
	entry->request.syn_at = order->sent_at;
	entry->request.waiting_at = 0;
	entry->request.repeat_after = repeat_after(entry);
	path_start_sent(&entry->start, order->sent_at);
	look_later(entry, first_look(entry, order->sent_at));
}

/* Starts to make the due requests again, unless the thread is busy. */
static void start_due(void)
{
	struct blind_retry_order orders[BLIND_RETRY_MAX];
	int count = 0;

	if (!due_count || blind_retry_is_busy())
		return;
	for (int i = 0; i < expected_count && count < BLIND_RETRY_MAX; i++) {
		struct expected *entry = expected[i];

		if (entry->due && !entry->cancelled)
			orders[count++] = (struct blind_retry_order){
				.owner = entry,
				.retry = &entry->retry,
				.start = &entry->start,
				.count = (unsigned int)entry->request.repeats + 1,
				.syn_at = entry->request.syn_at,
			};
	}
	/* Without a thread we leave them to the kernel. */
	if (count && !blind_retry_start(orders, count))
		for (int i = 0; i < count; i++)
			take_result(&orders[i]);
}

static bool is_unanswered(void *entry)
{
	struct tcp_info info;

	return ask(entry, &info) > 0 && info.tcpi_state == TCPINFO_SYN_SENT;
}

/*
 * If the path of the SYN is dead, looks for another network to the same converter, for which the request was made. Returns whether to make
 * the request again over that network.
 */
static bool path_look(struct expected *entry, int64_t now)
{
	const struct converters_query query = {
		.destination = &entry->server,
		.family = sockaddr_ip_is_v4(&entry->retry.to) ? AF_INET : AF_INET6,
		.tried = ~(1u << entry->converter),
	};
	const struct path_start_syn syn = { SURVEY_DATA_ONLY, is_unanswered, entry };
	union sockaddr_ip addr;

	return entry->start.look_at && now >= entry->start.look_at && path_start_look(&entry->start, &query, &syn, &addr) == PATHS_MOVE;
}

static void path_answered(const struct expected *entry, const struct tcp_info *info)
{
	/* the least: the program may have filled queues before we look */
	if (info->tcpi_min_rtt && info->tcpi_min_rtt != UINT32_MAX)
		path_start_answered(&entry->start, info->tcpi_min_rtt / 1000 + 1, false);
}

static void note_untaken(const struct expected *entry)
{
	gone_in_a_row = 0;
	paths_note_syn_data(&entry->start.path.id, false, entry->request.syn_at);
	converters_forget_silence(entry->converter);
}

static void note_slow(const struct expected *entry)
{
	char text[SOCKADDR_STRLEN];

	blind_memory_note(&entry->server, BLIND_TROUBLE_SLOW);
	log_about(entry->retry.tid);
	log_line("%s: answers later than the converter waits; the next connections wait for the server", sockaddr_ip_format(&entry->server, text));
}

/* A converter that answers the probe at once, but not this request, is waiting for its server. Doubts a converter that doesn't answer. */
static void probe_look(struct expected *entry, int64_t now)
{
	if (entry->probe.fd < 0 || path_probe_look(&entry->probe) || path_probe_age(&entry->probe, now) < BLIND_PROBE_MS)
		return;
	path_probe_close(&entry->probe);
	converters_doubt(entry->converter);
}

/* Looks at one request. Returns whether to look again. */
static bool request_look(struct expected *entry, int64_t now)
{
	const int64_t patience = supervision.settings->timeout_ms * CLOCK_NS_PER_MS;
	struct blind_seen seen = { 0 };
	struct tcp_info info;
	const int found = ask(entry, &info);
	int64_t look_at;

	if (found < 0 || entry->cancelled)
		return false;
	if (found)
		seen = (struct blind_seen){
			.exists = true,
			.syn_sent = info.tcpi_state == TCPINFO_SYN_SENT,
			.answered = info.tcpi_rtt,
			.taken = info.tcpi_options & TCPI_OPT_SYN_DATA,
			.syn_repeated = info.tcpi_total_retrans,
		};
	probe_look(entry, now);
	if (seen.syn_sent && path_look(entry, now)) {
		mark_due(entry);
		return true;
	}
	switch (blind_judge(&entry->request, &seen, now, patience, &look_at)) {
	case BLIND_OPEN:
		look_later(entry, with_path(entry, look_at));
		return true;
	case BLIND_REPEAT:
		mark_due(entry);
		return true;
	case BLIND_TAKEN:
		gone_in_a_row = 0;
		if (seen.taken) {
			paths_note_syn_data(&entry->start.path.id, true, entry->request.syn_at);
			converters_admitted(entry->converter, &entry->server);
		}
		path_answered(entry, &info);
		break;
	case BLIND_UNTAKEN:
		if (!seen.exists)
			note_slow(entry);
		note_untaken(entry);
		break;
	case BLIND_SILENT:
		if (!path_probe_send(&entry->probe, &entry->start.path, false))
			converters_doubt(entry->converter);
		look_later(entry, with_path(entry, look_at));
		return true;
	case BLIND_TO_KERNEL:
		break;
	case BLIND_SLOW:
		note_slow(entry);
		break;
	case BLIND_GONE:
		if (!seen.exists && !converters_admits(entry->converter, &entry->server))
			blind_memory_note(&entry->server, BLIND_TROUBLE_FAILED);
		last_gone.path = entry->start.path.id;
		last_gone.syn_at = entry->request.syn_at;
		if (++gone_in_a_row < GONE_MAX)
			break;
		gone_in_a_row = 0;
		if (!enquiry_start(&entry->start, now))
			note_untaken(entry);
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
		struct expected *entry = expected[i];

		if (entry->due) {
			/* the retry thread may be using the request */
		} else if (entry->look_at > now) {
			look_later(entry, entry->look_at);
		} else if (!request_look(entry, now)) {
			forget_request(entry); /* moves another request into its place */
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
		struct expected *entry = expected[i];

		if (!entry->retry.message || entry->retry.cookie != cookie)
			continue;
		entry->cancelled = true;
		if (blind_retry_cancel(entry))
			continue;
		due_count -= entry->due;
		entry->due = false;
		look_later(entry, clock_ns());
	}
}

void blind_requests_note_open(void)
{
	struct tcp_info info;

	/* A path in doubt gets a request that isn't blind; if its data is taken, the doubt ends. */
	if (gone_in_a_row)
		paths_note_syn_data(&last_gone.path, false, last_gone.syn_at);
	for (int i = 0; i < expected_count; i++)
		if (!expected[i]->cancelled && ask(expected[i], &info) == 0)
			paths_note_syn_data(&expected[i]->start.path.id, false, expected[i]->request.syn_at);
}

void blind_requests_take_results(void)
{
	int count;
	const struct blind_retry_order *orders = blind_retry_end(&count);

	for (int i = 0; i < count; i++)
		take_result(&orders[i]);
	start_due();
}
