/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engine_dial.c - the engine without a kernel: its operations are a script of events, its networks are said, its clock is moved
 *
 * What the engine has done is a line of words (said()): "syn 1 data", "connect 2", "end", "take 8" …
 */
#include "config.h"

#include "client/converters_facts.h"
#include "client/exchange.h"
#include "client/user_cache.h"
#include "convert/convert.h"
#include "engine/decide.h"
#include "engine/dial.h"
#include "host/networks.h"
#include "run.h"

#include <check.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS CLOCK_NS_PER_MS
#define S CLOCK_NS_PER_S
#define TAKEN (TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS)

static struct settings settings;
static const char *addresses = "192.0.2.1,192.0.2.2";
static char lines[2048]; /* the log */

/* The kernel, as the script has it. */
static struct kernel {
	int64_t now, wake_at;
	struct tcp_info info;
	int error;              /* SO_ERROR */
	bool fell_back, shut;   /* shut: the peer's end of the stream is there */
	uint8_t stream[CONVERT_MESSAGE_MAX];
	size_t len, shown;      /* bytes that are there, and that MSG_PEEK shows at first; 0: all */
	int read_error;
	ssize_t takes;          /* how much output is taken at once; or -errno */
	ssize_t syn_takes;      /* likewise, with a SYN */
	int connects, fits, binds; /* 0 or -errno */
	int holds;              /* what ops->hold() returns */
	bool no_mptcp, several, blind, unprobed, lost_bytes;
	struct convert_request request; /* the last one */
	uint8_t message[CONVERT_MESSAGE_MAX + 4096];
	size_t message_len;
	unsigned int watched;
	char done[512];
} kernel;

/* The networks, likewise. */
static struct networks {
	enum paths_do what;     /* of the next look */
	enum paths_do leave;    /* of survey_leave() */
	bool begins, forbidden, refuses, trial_over, trial_works;
	int elsewhere, chosen;  /* paths of @list; -1: none */
	int missed;
	struct path_list list;
	unsigned int open, looks;
	enum survey_syn syn;
} nets;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	const size_t used = strlen(kernel.done);
	va_list args;

	va_start(args, format);
	vsnprintf(kernel.done + used, sizeof(kernel.done) - used, format, args);
	va_end(args);
}

/* Returns what was done since it was asked last. */
static const char *said(void)
{
	static char text[sizeof(kernel.done)];

	memcpy(text, kernel.done, sizeof(text));
	kernel.done[0] = '\0';
	return text;
}

__attribute__((format(printf, 1, 2))) static void log_keep(const char *format, ...)
{
	const size_t used = strlen(lines);
	va_list args;

	va_start(args, format);
	vsnprintf(lines + used, sizeof(lines) - used, format, args);
	va_end(args);
	strncat(lines, "\n", sizeof(lines) - strlen(lines) - 1);
}

static bool is_logged(const char *text)
{
	return strstr(lines, text);
}

static int64_t clock_of_script(void)
{
	return kernel.now;
}

/* --- networks: in the place of src/host --- */

static int best_of(struct path_list *list, int best)
{
	*list = nets.list;
	return best;
}

int path_list_choose(struct path_list *list, const struct settings *with, const struct converters_query *query)
{
	(void)with, (void)query;
	return best_of(list, nets.chosen);
}

int path_list_missed(const struct path_list *list, int best)
{
	(void)list, (void)best;
	return nets.missed;
}

int path_list_elsewhere(struct path_list *list, const struct settings *with, const struct converters_query *query, const struct path *own)
{
	(void)with, (void)query, (void)own;
	return best_of(list, nets.elsewhere);
}

int path_list_refused(struct path_list *list, const struct settings *with, const struct converters_query *query, const struct path_id *own)
{
	(void)with, (void)query, (void)own;
	return best_of(list, nets.elsewhere);
}

bool path_is_refused(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH;
}

bool path_list_is_forbidden(const struct settings *with, const struct converters_query *query)
{
	(void)with, (void)query;
	return nets.forbidden;
}

const char *path_complaint(const struct path_id *id)
{
	(void)id;
	return "is silent";
}

int path_direct_take(int fd, const struct settings *with, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken)
{
	(void)with, (void)server;
	note("direct %d %d %d; ", fd, moved, device);
	*taken = (struct path_direct){ .name = "wlan0", .why = "is silent" };
	return nets.refuses ? -ENETUNREACH : nets.elsewhere >= 0;
}

bool network_bind(int fd, const struct in6_addr *source, int device)
{
	note("bind %d %d; ", source->s6_addr[15], device);
	errno = fd == 99 ? EADDRINUSE : 0;
	return fd != 99 && fd != 98;
}

bool path_is_same(const struct path_id *a, const struct path_id *b)
{
	return a->converter == b->converter && IN6_ARE_ADDR_EQUAL(&a->source, &b->source);
}

void survey_reset(struct survey *survey)
{
	memset(survey, 0, sizeof(*survey));
}

void survey_close(struct survey *survey)
{
	(void)survey;
	nets.open--;
}

bool survey_begin(struct survey *survey, const struct path *own, const struct settings *with, const struct converters_query *query)
{
	(void)with, (void)query;
	survey->own = *own;
	survey->list = nets.list;
	nets.open++;
	return nets.begins;
}

enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again)
{
	(void)survey, (void)now, (void)waiting;
	nets.looks++;
	nets.syn = syn;
	*again = 30;
	return nets.what;
}

enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best)
{
	(void)survey, (void)what, (void)syn;
	*best = nets.elsewhere;
	return nets.leave;
}

bool survey_try(struct survey *survey, const struct path *path)
{
	survey->own = *path;
	note("try %d %d; ", path->id.converter, path->id.source.s6_addr[15]);
	return true;
}

bool survey_trial_ends(struct survey *survey, bool *works)
{
	(void)survey;
	*works = nets.trial_works;
	return nets.trial_over;
}

/* --- the operations --- */

static struct converters_query query(const struct dial *dial)
{
	return (struct converters_query){ .destination = &dial->server, .family = AF_INET, .tried = dial->tried, .any = true };
}

static bool allows(struct dial *dial, enum dial_use use)
{
	(void)dial;
	return use == DIAL_USE_MPTCP ? !kernel.no_mptcp : use == DIAL_USE_BLIND ? kernel.blind : kernel.several;
}

static uint64_t number(void)
{
	return 77;
}

static int fit(struct dial *dial, union sockaddr_ip *to, bool mptcp)
{
	(void)to;
	dial->mptcp = mptcp;
	return kernel.fits;
}

static int prepare(struct dial *dial)
{
	return kernel.binds ? kernel.binds : path_start_bind(&dial->start, 3);
}

static int host_of(const union sockaddr_ip *to)
{
	return ((const uint8_t *)&to->in.sin_addr)[3];
}

static void syn_sent(void)
{
	kernel.info = (struct tcp_info){ .tcpi_state = TCPINFO_SYN_SENT };
	kernel.len = kernel.shown = 0;
	kernel.fell_back = kernel.shut = false;
}

static int connect_to(struct dial *dial, const union sockaddr_ip *to)
{
	(void)dial;
	note("connect %d; ", host_of(to));
	syn_sent();
	return kernel.connects;
}

static int hold(struct dial *dial, const union sockaddr_ip *to)
{
	(void)dial;
	note("hold %d; ", host_of(to));
	return kernel.holds;
}

static ssize_t output(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	const ssize_t takes = to ? kernel.syn_takes : kernel.takes;
	size_t len = iov[0].iov_len + iov[1].iov_len;

	(void)dial;
	if (to)
		note("syn %d data; ", host_of(to));
	if (takes < 0)
		return takes;
	if (to)
		syn_sent();
	memcpy(kernel.message, iov[0].iov_base, iov[0].iov_len);
	if (iov[1].iov_len)
		memcpy(kernel.message + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
	len = len < (size_t)takes ? len : (size_t)takes;
	kernel.message_len = len;
	if (!to)
		note("send %zu; ", len);
	memset(&kernel.request, 0, sizeof(kernel.request));
	convert_request_parse(kernel.message, len, &kernel.request);
	return (ssize_t)len;
}

static void begun(struct dial *dial)
{
	(void)dial;
}

static void info(struct dial *dial, struct tcp_info *out)
{
	(void)dial;
	*out = kernel.info;
}

static bool fell_back(struct dial *dial)
{
	(void)dial;
	return kernel.fell_back;
}

static int socket_error(struct dial *dial)
{
	const int error = kernel.error;

	(void)dial;
	kernel.error = 0;
	return error;
}

static ssize_t peek(struct dial *dial, uint8_t *buffer, size_t size, bool *ended)
{
	const size_t len = ended || !kernel.shown ? kernel.len : kernel.shown;

	(void)dial;
	note("peek; ");
	ck_assert_uint_le(len, size);
	if (kernel.read_error)
		return -kernel.read_error;
	if (ended)
		*ended = kernel.shut;
	memcpy(buffer, kernel.stream, len);
	return len || kernel.shut ? (ssize_t)len : -EAGAIN;
}

static bool take(struct dial *dial, size_t bytes)
{
	(void)dial;
	note("take %zu; ", bytes);
	return !kernel.lost_bytes;
}

static bool probe(struct dial *dial, int seconds)
{
	(void)dial;
	note("probe %d; ", seconds);
	return !kernel.unprobed;
}

static void watch(struct dial *dial)
{
	(void)dial;
	kernel.watched++;
}

static void wake(struct dial *dial, int64_t at)
{
	(void)dial;
	kernel.wake_at = at;
}

static void disconnect(struct dial *dial)
{
	(void)dial;
	note("end; ");
}

static const struct dial_ops ops = {
	.query = query, .allows = allows, .number = number, .fit = fit, .prepare = prepare, .connect = connect_to, .hold = hold,
	.send = output, .begun = begun, .info = info, .fell_back = fell_back, .error = socket_error, .peek = peek, .take = take,
	.probe = probe, .watch = watch, .wake = wake, .disconnect = disconnect,
};

/* --- the script --- */


static struct dial dial;
static struct dial_end end;

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0     ? addresses :
	       strcmp(name, "CONVERT_CACHE") == 0    ? "/dev/null" :
						       NULL;
}

static void setup(void)
{
	static const struct dial_host host = { .settings = &settings, .log = log_keep, .clock = clock_of_script };

	kernel = (struct kernel){ .now = clock_ns(), .takes = 4096, .syn_takes = 4096 };
	nets = (struct networks){ .what = PATHS_WAIT, .begins = true, .elsewhere = -1, .chosen = -1, .missed = -1 };
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	settings.bypass_mptcp = false;
	user_cache_init(&settings);
	converters_init(&settings);
	dial_init(&host);
}

static void setup_named(void)
{
	addresses = "converter.example";
	setup();
}

/* A call to connect. */
static enum dial_state dial_begin(bool holds)
{
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = true };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	lines[0] = kernel.done[0] = '\0';
	return dial_next(&dial, holds, &end);
}

static enum dial_state step(void)
{
	return dial_step(&dial, &end);
}

/* The SYN+ACK is there: what was done before it isn't said any more. */
static void synack(uint8_t options)
{
	said();
	kernel.info = (struct tcp_info){ .tcpi_state = TCPINFO_ESTABLISHED, .tcpi_options = options, .tcpi_min_rtt = 10000 };
}

enum answer { WHOLE, SUPPORTED, SILENCE, GARBAGE, REFUSED, NOT_AUTHORIZED, COOKIE, OPTION, FULL };

static void answer(enum answer what)
{
	const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700, .corrects = true, .silent = what == SILENCE,
							 .blind = what == SILENCE, .repeats = what == SILENCE };
	static const uint8_t mptcp = 30;
	struct convert_writer writer;

	convert_writer_init(&writer, kernel.stream, sizeof(kernel.stream));
	if (what == SUPPORTED || what == SILENCE) {
		convert_write_supported(&writer, &mptcp, 1);
		convert_write_withholding(&writer, &withholding);
	}
	if (what == WHOLE || what == SUPPORTED || what == SILENCE)
		convert_write_tcp_header(&writer, NULL, 0);
	else if (what == COOKIE)
		convert_write_error_cookie(&writer, (const uint8_t *)"biscuit", 7);
	else if (what == OPTION)
		convert_write_error_options(&writer, &mptcp, 1);
	else
		convert_write_error(&writer, what == REFUSED	    ? CONVERT_ERROR_CONNECTION_RESET :
					     what == NOT_AUTHORIZED ? CONVERT_ERROR_NOT_AUTHORIZED :
								      CONVERT_ERROR_RESOURCE_EXCEEDED, what == FULL ? 7 : 0);
	kernel.len = (size_t)convert_writer_finish(&writer);
	if (what == GARBAGE)
		kernel.stream[0] = 'H';
}

/* A connection that succeeds, from which the converter is known. */
static void learn(enum answer what)
{
	ck_assert_int_eq(dial_begin(false), DIAL_ON);
	synack(TAKEN);
	answer(what);
	ck_assert_int_eq(step(), DIAL_REACHED);
}

#define expect_said(text) ck_assert_str_eq(said(), (text))
#define expect_on(state) ck_assert_int_eq((state), DIAL_ON)

/* --- what a converter says --- */

START_TEST(response_reaches_the_server)
{
	settings.withheld_ms = 700;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
	ck_assert(dial_wants_output(&dial));
	expect_on(step());
	expect_said("");
	ck_assert(dial_wants_output(&dial));
	synack(TAKEN & ~TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	expect_said("peek; ");
	ck_assert(!dial_wants_output(&dial));
	ck_assert_uint_ge(kernel.watched, 2);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	ck_assert(is_logged("203.0.113.1:443: converted over MPTCP, request taken in the SYN after "));
	ck_assert_uint_eq(paths_facts_kept(&dial.start.own.id).rtt_ms, 11);
}
END_TEST

START_TEST(response_comes_in_pieces)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	for (size_t i = 1; i < 8; i++) {
		kernel.len = i;
		expect_on(step());
		expect_said("peek; peek; ");
		ck_assert_uint_eq(dial.attempt.awaited, i < 4 ? 4 : 8);
		ck_assert_int_eq(dial.attempt.in_vain, i != 1 && i != 4);
		ck_assert_int_eq(kernel.wake_at, dial.attempt.ends);
	}
	/* what MSG_PEEK hasn't shown at first */
	kernel.len = 8;
	kernel.shown = 5;
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; peek; take 8; ");
}
END_TEST

START_TEST(dribbling_ends_with_the_timeout)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.len = 1;
	kernel.now += 2 * S;
	expect_on(step());
	kernel.len = 2;
	kernel.now += S - 1;
	expect_on(step());
	kernel.len = 3;
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("converter 192.0.2.1:1234: no answer in time, left alone for 30 s"));
	expect_said("peek; peek; peek; peek; peek; peek; end; syn 2 data; ");
}
END_TEST

/* The converter was waiting for the server. */
START_TEST(late_response_has_a_timeout_of_its_own)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.now += 10 * S;
	kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 100;
	expect_on(step());
	answer(WHOLE);
	kernel.len = 1;
	expect_on(step());
	ck_assert_int_eq(kernel.wake_at, kernel.now + 3 * S);
	kernel.len = 2;
	kernel.now += 3 * S - 1;
	expect_on(step());
	ck_assert_int_eq(kernel.wake_at, kernel.now + 1);
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("no answer in time"));
}
END_TEST

START_TEST(stream_that_ends_early_is_no_response)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.len = 5;
	kernel.shut = true;
	expect_on(step());
	expect_said("peek; peek; end; syn 2 data; ");
	ck_assert(is_logged("192.0.2.1:1234: closed without a response, left alone for 30 s\n"));
	kernel.shut = true; /* and without a byte */
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert_str_eq(end.reason, "closed without a response");
	ck_assert(is_logged("203.0.113.1:443: direct, the converter fails: closed without a response after "));
}
END_TEST

START_TEST(servers_failure_is_final)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(REFUSED);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNREFUSED);
	ck_assert(end.told);
	expect_said("peek; ");
	ck_assert(converters_is_proven(0));
}
END_TEST

START_TEST(refusal_is_about_one_server)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(NOT_AUTHORIZED);
	expect_on(step());
	ck_assert(is_logged("left alone for 30 s as to this server\n"));
	synack(TAKEN);
	answer(FULL);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert(is_logged("192.0.2.2:1234: Resource Exceeded, left alone for 7 s\n"));
	ck_assert(!end.told);
	/* both are left alone */
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
	ck_assert(is_logged("203.0.113.1:443: direct: "));
}
END_TEST

START_TEST(nothing_goes_directly_where_it_must_not)
{
	settings.fail_closed = true;
	expect_on(dial_begin(false));
	for (int i = 0; i < 2; i++) {
		synack(TAKEN);
		answer(FULL);
		ck_assert_int_eq(step(), (i ? DIAL_FAILED : DIAL_ON));
	}
	ck_assert_int_eq(end.error, ECONNREFUSED);
	end = (struct dial_end){ .verdict = POLICY_CONVERT, .reason = "all of them rest" };
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_FAILED);
	ck_assert(is_logged("203.0.113.1:443: failed: all of them rest, and CONVERT_FALLBACK is none\n"));
	end = (struct dial_end){ .verdict = POLICY_DIRECT_LOCAL, .reason = "it is local" };
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
}
END_TEST

START_TEST(cookie_is_given_once)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(kernel.request.has_cookie);
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	expect_said("peek; end; syn 2 data; ");
}
END_TEST

START_TEST(option_that_is_refused_is_left_out)
{
	settings.bypass_mptcp = true;
	expect_on(dial_begin(false));
	ck_assert(kernel.request.extended);
	synack(TAKEN);
	answer(OPTION);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.extended);
}
END_TEST

START_TEST(response_that_cannot_be_taken_fails)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.lost_bytes = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
}
END_TEST

/* --- rides --- */

START_TEST(each_ride_is_safer)
{
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	expect_said("end; connect 1; ");
	ck_assert(is_logged("data in the SYN was not taken, asked behind the handshake"));
	ck_assert_int_eq(dial.attempt.ride, RIDE_MPTCP);
	ck_assert(dial.attempt.want_output && !dial.attempt.syn_data);
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.fell_back = true;
	expect_on(step());
	expect_said("end; syn 1 data; ");
	ck_assert(is_logged("Multipath TCP is lost on the way, asked over TCP"));
	ck_assert(!dial.mptcp);
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(is_logged("converted over TCP, request taken in the SYN"));
	ck_assert_int_eq(converters_mptcp(0), CACHE_MPTCP_LOST);
	/* the next one knows */
	expect_on(dial_begin(false));
	ck_assert(!dial.mptcp);
}
END_TEST

START_TEST(multipath_tcp_may_be_lost_behind_the_handshake)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.fell_back = true;
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
}
END_TEST

/* CONVERT_TIMEOUT goes on, but half of it is left. */
START_TEST(time_goes_on_over_rides)
{
	int64_t ends;

	expect_on(dial_begin(false));
	ends = dial.attempt.ends;
	ck_assert_int_eq(ends, kernel.now + 3 * S);
	ck_assert_int_eq(dial.attempt.wake_at, kernel.now + S);
	kernel.now += S;
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert_int_eq(dial.attempt.ends, ends);
	kernel.now += S;
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.fell_back = true;
	expect_on(step());
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S / 2);
}
END_TEST

START_TEST(what_was_written_cannot_be_asked_again)
{
	expect_on(dial_begin(false));
	dial.wrote = true;
	synack(TCPI_OPT_TIMESTAMPS);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
	expect_said("");
	expect_on(dial_begin(false));
	dial.wrote = true;
	synack(TAKEN);
	answer(COOKIE);
	ck_assert_int_eq(step(), DIAL_FAILED);
	expect_on(dial_begin(false));
	expect_said("syn 2 data; ");
	dial.wrote = true;
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNREFUSED;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNREFUSED);
}
END_TEST

/* --- output --- */

START_TEST(request_follows_a_syn_that_takes_no_data)
{
	kernel.syn_takes = -EOPNOTSUPP;
	kernel.takes = -EAGAIN;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; connect 1; ");
	expect_on(step()); /* unanswered */
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.takes = 4096;
	expect_on(step());
	expect_said("send 28; peek; ");
	ck_assert_int_eq(dial.start.request_at, kernel.now);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.own.id).rtt_ms, 11);
	ck_assert(kernel.request.has_info);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(is_logged("request behind the handshake"));
}
END_TEST

START_TEST(early_data_follows_the_request)
{
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .early = (const uint8_t *)"early data", .early_len = 10 };
	sockaddr_ip_parse(&dial.server, "203.0.113.1", 443);
	path_start_init(&dial.start, true, &in6addr_any);
	kernel.syn_takes = 32;
	expect_on(dial_next(&dial, false, &end));
	ck_assert_uint_eq(dial.attempt.sent, 32);
	ck_assert_uint_eq(dial.attempt.request_len, 28);
	ck_assert_mem_eq(kernel.message + 28, "earl", 4);
	said();
	synack(TAKEN);
	kernel.takes = 5;
	expect_on(step());
	expect_said("send 5; ");
	ck_assert_mem_eq(kernel.message, "y dat", 5);
	expect_on(step());
	expect_said("send 1; peek; ");
	ck_assert_mem_eq(kernel.message, "a", 1);
	ck_assert_int_eq(dial.start.request_at, 0); /* the request went with the SYN */
	kernel.len = (size_t)dial_message(&dial, kernel.stream, sizeof(kernel.stream));
	ck_assert_uint_eq(kernel.len, 38);
	ck_assert_mem_eq(kernel.stream + 28, "early data", 10);
	ck_assert_int_eq(dial_message(&dial, kernel.stream, 37), -ENOBUFS);
}
END_TEST

START_TEST(held_syn_waits)
{
	ck_assert_int_eq(dial_begin(true), DIAL_HELD);
	expect_said("hold 1; ");
	ck_assert_int_eq(dial.attempt.ends, 0);
	dial.early = (const uint8_t *)"hello";
	dial.early_len = 5;
	kernel.now += 10 * S;
	ck_assert_int_eq(dial_send_held(&dial), 0);
	expect_said("send 33; ");
	ck_assert(dial.attempt.syn_data && dial.attempt.synack_due);
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S);
	ck_assert_int_eq(dial.start.syn_at, kernel.now);
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	kernel.takes = -EHOSTUNREACH;
	ck_assert_int_eq(dial_begin(true), DIAL_HELD);
	ck_assert_int_eq(dial_send_held(&dial), -EHOSTUNREACH);
}
END_TEST

START_TEST(syn_that_cannot_be_held_goes)
{
	kernel.holds = 1;
	expect_on(dial_begin(true));
	expect_said("hold 1; syn 1 data; ");
	kernel.holds = -EINPROGRESS;
	expect_on(dial_begin(true));
	expect_said("hold 1; ");
	ck_assert(dial.attempt.want_output && !dial.attempt.syn_data && !dial.attempt.ask_silent);
	kernel.holds = -ENETUNREACH;
	ck_assert_int_eq(dial_begin(true), DIAL_REFUSED);
	expect_said("hold 1; hold 2; ");
}
END_TEST

/* --- errors of the kernel --- */

START_TEST(converter_that_cannot_be_reached_is_passed_over)
{
	kernel.syn_takes = -ENETUNREACH;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	expect_said("syn 1 data; syn 2 data; ");
	ck_assert_int_eq(end.error, ENETUNREACH);
	ck_assert_str_eq(end.reason, "Network is unreachable");
	ck_assert(is_logged("converter 192.0.2.1:1234: Network is unreachable\n"));
	kernel.syn_takes = 4096;
	kernel.binds = -EADDRNOTAVAIL;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(end.error, EADDRNOTAVAIL);
	kernel.binds = 0;
	kernel.fits = -EAFNOSUPPORT;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	expect_said("");
	kernel.fits = 0;
	expect_on(dial_begin(false)); /* none of these is a reason to rest */
}
END_TEST

START_TEST(reset_of_a_converter)
{
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	kernel.error = ECONNREFUSED; /* says more */
	expect_on(step());
	expect_said("syn 1 data; peek; end; syn 2 data; ");
	ck_assert(is_logged("192.0.2.1:1234: Connection refused, left alone for 30 s\n"));
	kernel.read_error = 0;
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	/* one that has answered others refuses this request */
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert(is_logged("Connection reset by peer, left alone for 30 s as to this server\n"));
}
END_TEST

START_TEST(name_has_to_be_resolved)
{
	ck_assert_int_eq(dial_begin(false), DIAL_RESOLVING);
	expect_said("");
	ck_assert_int_eq(dial_resolved(&dial, &end), DIAL_RESOLVING);
}
END_TEST

/* --- silence --- */

START_TEST(no_synack_is_the_converters_fault)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
	dial.start.look_at = 0;
	for (int i = 1; i < 3; i++) {
		kernel.now = dial.started + i * S;
		expect_on(step());
		ck_assert_int_eq(kernel.wake_at, kernel.now + S);
	}
	kernel.now = dial.started + 3 * S;
	expect_on(step());
	expect_said("end; syn 2 data; ");
	ck_assert(!converters_is_proven(0));
}
END_TEST

START_TEST(host_is_asked_behind_the_synack)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	synack(TAKEN);
	expect_on(step());
	said();
	for (int64_t after = S; after < 20 * S; after += 250 * MS) {
		kernel.now = dial.started + after;
		kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 300;
		expect_on(step());
	}
	ck_assert_int_eq(dial.attempt.probing_since, dial.started + S);
	ck_assert_ptr_nonnull(strstr(said(), "peek; probe 1; "));
	kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 9000; /* it has died since */
	kernel.now += S;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s\n"));
	ck_assert(!converters_is_proven(0));
}
END_TEST

START_TEST(host_that_has_proved_nothing)
{
	kernel.unprobed = true; /* it can't even be asked */
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.now += 3 * S - 1;
	expect_on(step());
	ck_assert_int_eq(dial.attempt.probing_since, 0);
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s as to this server\n"));
}
END_TEST

START_TEST(silent_request)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	ck_assert(kernel.request.has_silence && !kernel.request.has_info);
	synack(TAKEN);
	said();
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("");
	ck_assert(is_logged("request taken in the SYN, server confirmed by the SYN+ACK, silently"));
	/* the facts aren't there: the response is */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	/* something else is in its place */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	answer(GARBAGE);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_silence);
}
END_TEST

START_TEST(silent_request_that_is_reset_is_made_again)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	expect_on(step());
	expect_said("syn 1 data; peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_silence);
}
END_TEST

/* --- confirmation --- */

static void confirm(void)
{
	learn(SUPPORTED);
	kernel.now += MS;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.confirmable);
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_CONFIRMED);
	ck_assert(is_logged(", server confirmed by the SYN+ACK after"));
	ck_assert_int_eq(kernel.wake_at, 0);
	ck_assert(!dial_wants_output(&dial));
	kernel.now += 100 * S;
	expect_on(step());
	said();
}

START_TEST(synack_confirms_the_server)
{
	confirm();
	lines[0] = '\0';
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	ck_assert_str_eq(lines, "");
}
END_TEST

START_TEST(synack_that_lied)
{
	confirm();
	answer(REFUSED);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
	ck_assert(is_logged("its SYN+ACK confirmed a server that it has not reached"));
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 0);
	expect_said("peek; ");
}
END_TEST

START_TEST(confirmed_connection_that_ends)
{
	confirm();
	kernel.read_error = ECONNRESET;
	ck_assert_int_eq(step(), DIAL_FAILED);
	expect_said("peek; ");
	kernel.read_error = 0;
	confirm();
	kernel.shut = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 700);
	confirm();
	answer(WHOLE);
	kernel.fell_back = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_str_eq(end.reason, "Multipath TCP was lost behind the handshake");
}
END_TEST

static const struct {
	const char *what;
	bool holds;
} confirmables[] = {
	{ "all is well", true }, { "may not", false }, { "early data is left", false }, { "unproven", false }, { "fell back lately", false },
	{ "data stayed out", false },
};

START_TEST(what_a_synack_may_confirm)
{
	static const uint8_t early[4096];

	if (_i != 3)
		learn(SUPPORTED);
	else
		settings.withheld_ms = 0; /* known, but not proven */
	if (_i == 4)
		converters_note_fallback(0, clock_ns() + MS);
	if (_i == 5)
		kernel.syn_takes = -EOPNOTSUPP;
	if (_i == 2)
		kernel.syn_takes = 100;
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = _i != 1, .early = early, .early_len = _i == 2 ? 4096 : 0 };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	ck_assert_msg(dial.attempt.confirmable == confirmables[_i].holds, "%s", confirmables[_i].what);
}
END_TEST

/* --- blind requests --- */

START_TEST(blind_request)
{
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.ask_blind && kernel.request.silence.blind);
	ck_assert_uint_eq(dial.attempt.number, 77);
	ck_assert_int_eq(dial.attempt.wake_at, 0);
	synack(TCPI_OPT_TIMESTAMPS | TCPI_OPT_SYN_DATA);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	ck_assert_int_eq(step(), DIAL_BLIND);
	ck_assert_int_eq(end.error, ECONNRESET);
	expect_on(dial_begin(false));
	kernel.error = ETIMEDOUT;
	ck_assert_int_eq(dial_failed(&dial, ECONNRESET, &end), DIAL_BLIND);
	ck_assert_int_eq(end.error, ETIMEDOUT);
	ck_assert_int_eq(end.ride, RIDE_MPTCP_SYN);
	/* data that isn't taken */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	ck_assert_int_eq(step(), DIAL_BLIND);
	ck_assert_int_eq(end.ride, RIDE_MPTCP);
	dial.attempt.ask_blind = dial.attempt.ask_silent = false;
	said();
	expect_on(dial_anew(&dial, end.ride, &end));
	expect_said("connect 1; ");
}
END_TEST

START_TEST(blind_request_behind_another)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	said();
	ck_assert(!dial_blindly(&dial)); /* it may not be */
	expect_said("");
	kernel.blind = true;
	ck_assert(dial_blindly(&dial));
	expect_said("syn 1 data; ");
	ck_assert(dial.attempt.ask_blind);
	kernel.syn_takes = -EHOSTUNREACH;
	ck_assert(!dial_blindly(&dial));
	expect_said("syn 1 data; end; ");
}
END_TEST

/* --- paths --- */

static void list_of(unsigned int source)
{
	nets.list = (struct path_list){ .count = 1, .names = { "wlan0" } };
	nets.list.paths[0] = (struct path){ .id = { .converter = 1 }, .device = 7 };
	nets.list.paths[0].id.source.s6_addr[10] = nets.list.paths[0].id.source.s6_addr[11] = 0xff;
	nets.list.paths[0].id.source.s6_addr[15] = (uint8_t)source;
	ck_assert_int_eq(sockaddr_ip_parse(&nets.list.addrs[0], "192.0.2.2", 1234), 0);
}

START_TEST(silent_path_is_left)
{
	expect_on(dial_begin(false));
	ck_assert_int_gt(dial.start.look_at, kernel.now);
	ck_assert_int_eq(kernel.wake_at, dial.start.look_at);
	kernel.now = dial.start.look_at;
	list_of(5);
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	ck_assert_int_eq(nets.syn, SURVEY_DATA);
	ck_assert_int_eq(dial.start.look_at, kernel.now + 30 * MS);
	expect_said("syn 1 data; ");
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_MOVE;
	nets.elsewhere = 0;
	expect_on(step());
	expect_said("end; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("converter 192.0.2.1:1234: the path to it is silent, asked by wlan0"));
	ck_assert_uint_eq(nets.open, 0);
	ck_assert_uint_eq(dial.start.moves, 1);
	ck_assert_uint_eq(dial.attempt.converter, 1);
	/* the converter is silent there, too: no network is better than the usual one */
	nets.what = PATHS_STAY;
	kernel.now += 4 * S;
	ck_assert_int_eq(step(), DIAL_ON);
	ck_assert(path_is_usual(&dial.start.own.id));
}
END_TEST

START_TEST(path_that_stays)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = PATHS_STAY;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_int_eq(kernel.wake_at, dial.attempt.wake_at);
	ck_assert_uint_eq(nets.open, 0);
	/* nothing to be found out */
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.begins = false;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	/* an answer that came meanwhile */
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	synack(TAKEN);
	nets.looks = 0;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_uint_eq(nets.looks, 0);
	/* what was written is behind the request: it can't begin anew */
	expect_on(dial_begin(false));
	dial.wrote = true;
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 0);
}
END_TEST

START_TEST(one_connection_asks_about_a_path)
{
	struct dial other;

	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	other = dial;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.looks = 0;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 0);
	ck_assert_int_eq(dial.start.look_at, kernel.now + 20 * MS);
	dial_stop(&other);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	dial_stop(&dial);
	ck_assert_uint_eq(nets.open, 0);
	/* what that has found out */
	expect_on(dial_begin(false));
	paths_note_failure(&dial.start.own.id, CACHE_PATH_SILENT);
	list_of(6);
	nets.elsewhere = 0;
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	ck_assert_uint_eq(dial.start.own.id.source.s6_addr[15], 6);
	ck_assert_int_eq(dial.start.own.device, 7);
}
END_TEST

static bool is_somebody_waiting;

static bool is_waiting(const struct path_start *start)
{
	(void)start;
	return is_somebody_waiting;
}

/* The owner has closed its socket, or is another process's. */
START_TEST(survey_that_was_left_behind)
{
	struct dial first;

	dial_host.is_waiting = is_waiting;
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		first = dial;
		kernel.now = first.start.look_at;
		expect_on(dial_step(&first, &end));
		ck_assert_uint_eq(nets.open, 1);
		is_somebody_waiting = true;
		expect_on(dial_begin(false));
		kernel.now = dial.start.look_at;
		expect_on(step());
		ck_assert_uint_eq(dial.start.survey, 0);
		if (i)
			path_start_repair_in_child();
		else
			is_somebody_waiting = false;
		kernel.now = dial.start.look_at;
		expect_on(step());
		ck_assert_uint_ne(dial.start.survey, 0);
		ck_assert_uint_eq(nets.open, 1);
		dial_stop(&first); /* it isn't its own any more */
		ck_assert_uint_eq(nets.open, 1);
		dial_stop(&dial);
		ck_assert_uint_eq(nets.open, 0);
	}
}
END_TEST

START_TEST(path_that_works_is_kept_for_the_next_converter)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert(dial.start.placed);
	paths_note_answer(&dial.start.own.id, 10, true);
	nets.elsewhere = -1;
	dial.start.look_at = 0;
	kernel.now += 3 * S;
	expect_on(step());
	ck_assert_uint_eq(dial.attempt.converter, 0);
	ck_assert_uint_eq(dial.start.own.id.source.s6_addr[15], 5);
}
END_TEST

START_TEST(syns_with_data_are_lost)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_BEHIND;
	said();
	expect_on(step());
	expect_said("end; connect 1; ");
	ck_assert(is_logged("SYNs with data are lost on the way, asked behind the handshake"));
	/* nor does the request behind the handshake get through */
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.info.tcpi_unacked = 1;
	expect_on(step());
	ck_assert_int_eq(dial.start.request_at, kernel.now);
	kernel.now = dial.start.look_at;
	nets.what = PATHS_WAIT;
	expect_on(step());
	ck_assert_int_eq(nets.syn, SURVEY_BEHIND);
	kernel.now = dial.start.look_at;
	kernel.info.tcpi_unacked = 0;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

START_TEST(network_that_refuses_is_left)
{
	expect_on(dial_begin(false));
	list_of(5);
	nets.elsewhere = 0;
	said();
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	expect_said("end; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("the path to it leads nowhere (No route to host), begins on wlan0"));
	nets.elsewhere = -1; /* there is no other one */
	ck_assert_int_eq(dial_failed(&dial, EHOSTUNREACH, &end), DIAL_ON);
	ck_assert(path_is_usual(&dial.start.own.id));
	expect_said("end; bind 0 0; syn 1 data; ");
	expect_on(dial_begin(false)); /* what is no network's word */
	expect_said("syn 1 data; ");
	nets.elsewhere = 0;
	ck_assert_int_eq(dial_failed(&dial, ECONNREFUSED, &end), DIAL_DIRECT);
	expect_said("end; ");
}
END_TEST

START_TEST(no_more_than_so_many_moves)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	for (int i = 0; i < PATHS_MOVES_MAX; i++)
		expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert_uint_eq(dial.start.moves, PATHS_MOVES_MAX);
	ck_assert_int_eq(dial.start.look_at, 0);
	dial_failed(&dial, EHOSTUNREACH, &end);
	ck_assert_uint_eq(dial.start.moves, PATHS_MOVES_MAX);
	ck_assert(path_is_usual(&dial.start.own.id));
}
END_TEST

START_TEST(connection_begins_on_a_path_that_works)
{
	const struct path_id usual = { .converter = 0 };

	list_of(5);
	nets.chosen = nets.missed = 0;
	expect_on(dial_begin(false)); /* the usual one is as good as any */
	expect_said("syn 1 data; ");
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	expect_said("try 1 5; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("converter 192.0.2.2:1234: begins on wlan0\n"));
	ck_assert(dial.start.placed && dial.start.tried_path);
	ck_assert_int_gt(path_trials_look(), kernel.now);
	nets.trial_over = nets.trial_works = true;
	ck_assert_int_eq(path_trials_look(), 0);
	ck_assert(is_logged("the preferred path to the converter works again"));
	ck_assert_int_eq(path_trials_look(), 0);
	nets.list.paths[0].backup = nets.list.paths[0].bind_device = true;
	expect_on(dial_begin(false));
	ck_assert(is_logged("begins on wlan0, which is for backup\n"));
	ck_assert_ptr_nonnull(strstr(said(), "bind 5 7; syn 2 data; "));
	/* a program that has chosen its network stays there */
	dial_begin(false);
	said();
	dial.tried = 0;
	path_start_init(&dial.start, false, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	expect_said("syn 1 data; ");
	ck_assert_int_eq(dial.start.look_at, 0);
}
END_TEST

START_TEST(paths_that_are_forbidden)
{
	nets.forbidden = true;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(end.error, ENETUNREACH);
	ck_assert_int_eq(end.verdict, POLICY_CONVERT);
	ck_assert_str_eq(end.reason, "CONVERT_PATHS allows no network that leads to a converter");
	path_start_init(&dial.start, false, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
}
END_TEST

START_TEST(direct_connections_take_a_network_that_works)
{
	expect_on(dial_begin(false));
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("direct 3 0 0; ");
	nets.elsewhere = 0;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	ck_assert(is_logged("203.0.113.1:443: directly by wlan0, since the usual network is silent\n"));
	nets.refuses = true;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), -ENETUNREACH);
	ck_assert(is_logged("not directly, since CONVERT_PATHS allows no network that leads there\n"));
	nets.refuses = false;
	dial.start.placed = true; /* it was given back */
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("bind 0 0; direct 3 1 0; ");
	ck_assert_int_eq(path_start_bind(&dial.start, 99), -EADDRINUSE);
	ck_assert_int_eq(path_start_bind(&dial.start, 98), -EADDRNOTAVAIL);
	dial.start.may_move = false;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		response_reaches_the_server, response_comes_in_pieces, dribbling_ends_with_the_timeout,
		late_response_has_a_timeout_of_its_own, stream_that_ends_early_is_no_response, servers_failure_is_final,
		refusal_is_about_one_server, nothing_goes_directly_where_it_must_not, cookie_is_given_once,
		option_that_is_refused_is_left_out, response_that_cannot_be_taken_fails, each_ride_is_safer,
		multipath_tcp_may_be_lost_behind_the_handshake, time_goes_on_over_rides, what_was_written_cannot_be_asked_again,
		request_follows_a_syn_that_takes_no_data, early_data_follows_the_request, held_syn_waits, syn_that_cannot_be_held_goes,
		converter_that_cannot_be_reached_is_passed_over, reset_of_a_converter,
		no_synack_is_the_converters_fault, host_is_asked_behind_the_synack, host_that_has_proved_nothing, silent_request,
		silent_request_that_is_reset_is_made_again, synack_confirms_the_server, synack_that_lied, confirmed_connection_that_ends,
		blind_request, blind_request_behind_another, silent_path_is_left, path_that_stays, one_connection_asks_about_a_path,
		survey_that_was_left_behind, path_that_works_is_kept_for_the_next_converter, syns_with_data_are_lost, network_that_refuses_is_left, no_more_than_so_many_moves,
		connection_begins_on_a_path_that_works, paths_that_are_forbidden, direct_connections_take_a_network_that_works,
	};
	Suite *suite = suite_create("engine_dial");
	TCase *tcase = tcase_create("dial");

	TCase *named = tcase_create("named");

	tcase_add_checked_fixture(named, setup_named, NULL);
	tcase_add_test(named, name_has_to_be_resolved);
	suite_add_tcase(suite, named);
	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, what_a_synack_may_confirm, 0, sizeof(confirmables) / sizeof(confirmables[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
