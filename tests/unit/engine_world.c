/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_world.c - the engine without a kernel: see engine_world.h */
#include "config.h"

#include "engine_world.h"

#include "client/cache.h"
#include "host/networks.h"
#include "tempdir.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct settings settings;
static const char *addresses = "192.0.2.1,192.0.2.2";
static const char *cache_setting = "/dev/null";
char lines[2048];

struct kernel kernel;

struct networks nets;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	const size_t used = strlen(kernel.done);
	va_list args;

	va_start(args, format);
	vsnprintf(kernel.done + used, sizeof(kernel.done) - used, format, args);
	va_end(args);
}

const char *said(void)
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

bool is_logged(const char *text)
{
	return strstr(lines, text);
}

/* --- notes: in the place of src/client/notes.c --- */

void note_put(const struct cache *cache, const struct note *of)
{
	(void)cache;
	kernel.note = *of;
}

void note_direct(uint64_t cookie, const union sockaddr_ip *server, const char *reason)
{
	kernel.note = (struct note){ .cookie = cookie, .server = *server };
	kernel.direct_reason = reason;
}

static int64_t clock_of_script(void)
{
	return kernel.now;
}

/* --- networks: in the place of src/host --- */

const struct path_preferences *host_preferences(const struct settings *with)
{
	return &with->paths;
}

void list_of(unsigned int source)
{
	nets.list = (struct path_list){ .count = 1, .names = { "wlan0" } };
	nets.list.paths[0] = (struct path){ .id = { .converter = 1 }, .device = 7 };
	nets.list.paths[0].id.source.s6_addr[10] = nets.list.paths[0].id.source.s6_addr[11] = 0xff;
	nets.list.paths[0].id.source.s6_addr[15] = (uint8_t)source;
	ck_assert_int_eq(sockaddr_ip_parse(&nets.list.addrs[0], "192.0.2.2", 1234), 0);
}

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
	ck_assert_int_lt(best, (int)list->count);
	return nets.missed;
}

int path_list_elsewhere(struct path_list *list, const struct settings *with, const struct converters_query *query, const struct path *own)
{
	(void)with, (void)query, (void)own;
	return best_of(list, nets.elsewhere);
}

int path_list_refused(struct path_list *list, const struct settings *with, const struct converters_query *query, const struct path_id *own,
		      enum cache_path how)
{
	(void)with;
	nets.refused = how;
	nets.tried = query->tried;
	if (how == CACHE_PATH_REFUSES && nets.elsewhere >= 0)
		paths_note_failure(own, how);
	return best_of(list, nets.elsewhere);
}

bool networks_may_be_several(int fd, const union sockaddr_ip *to)
{
	(void)fd, (void)to;
	return kernel.several;
}

bool error_means_no_path(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH;
}

bool path_list_is_forbidden(const struct settings *with, const struct converters_query *query)
{
	(void)with, (void)query;
	return nets.forbidden;
}

const char *path_list_policy_breach(const struct settings *with, const union sockaddr_ip *to)
{
	(void)with, (void)to;
	return nets.policy_breach;
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

/* Descriptor 97 is bound to device 5. */
bool network_needs_socket(int fd, int device)
{
	return fd == 97 && device != 5;
}

bool path_is_same(const struct path_id *a, const struct path_id *b)
{
	return a->converter == b->converter && IN6_ARE_ADDR_EQUAL(&a->source, &b->source);
}

void survey_reset(struct survey *survey)
{
	memset(survey, 0, sizeof(*survey));
}

/* Runs it only once, since it may call the engine, which comes back here. */
static void let_others_run(void)
{
	void (*const run)(void) = nets.meanwhile_elsewhere;

	nets.meanwhile_elsewhere = NULL;
	if (run)
		run();
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
	let_others_run();
	return nets.begins;
}

enum paths_do survey_look(struct survey *survey, int64_t now, unsigned int waiting, enum survey_syn syn, unsigned int *again)
{
	(void)survey;
	ck_assert_int_eq(now, kernel.now);
	nets.looks++;
	nets.syn = syn;
	nets.waiting = waiting;
	if (nets.meanwhile)
		kernel.info.tcpi_state = TCPINFO_ESTABLISHED;
	*again = 30;
	return nets.what;
}

enum paths_do survey_leave(struct survey *survey, enum paths_do what, enum survey_syn syn, int *best)
{
	(void)survey, (void)syn;
	nets.left = what;
	*best = nets.elsewhere;
	return nets.leave;
}

void survey_ask(struct survey *survey, const struct path *own, bool whole)
{
	survey->own = *own;
	survey->count = !nets.unasked;
	note("ask%s %d %d; ", whole ? " for a response" : "", own->id.converter, own->id.source.s6_addr[15]);
	nets.open++;
}

enum survey_answer survey_answer(struct survey *survey, int64_t now)
{
	(void)survey;
	ck_assert_int_eq(now, kernel.now);
	return nets.answer;
}

bool survey_try(struct survey *survey, const struct path *path)
{
	survey->own = *path;
	note("try %d %d; ", path->id.converter, path->id.source.s6_addr[15]);
	return !nets.unasked;
}

bool survey_trial_ends(struct survey *survey, bool *works)
{
	(void)survey;
	let_others_run();
	*works = nets.trial_works;
	return nets.trial_over;
}

/* --- the operations --- */

static struct converters_query query(const struct dial *of)
{
	return (struct converters_query){ .destination = &of->server, .family = AF_INET, .tried = of->tried, .any_family = true };
}

static bool allows(struct dial *of, enum dial_use use)
{
	(void)of;
	return use == DIAL_USE_MPTCP ? !kernel.no_mptcp : kernel.blind;
}

static uint64_t number(void)
{
	return 77;
}

static int fit(struct dial *of, union sockaddr_ip *to, bool mptcp)
{
	(void)to;
	of->mptcp = mptcp && !kernel.only_tcp;
	return kernel.fits;
}

static int prepare(struct dial *of)
{
	return kernel.binds ? kernel.binds : path_start_bind(&of->start, 3);
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

static int connect_to(struct dial *of, const union sockaddr_ip *to)
{
	(void)of;
	note("connect %d; ", host_of(to));
	syn_sent();
	return kernel.connects;
}

static int defer(struct dial *of, const union sockaddr_ip *to)
{
	(void)of;
	note("defer %d; ", host_of(to));
	return kernel.holds;
}

static ssize_t output(struct dial *of, const struct iovec iov[static 2], const union sockaddr_ip *to)
{
	const ssize_t takes = to ? kernel.syn_takes : kernel.takes;
	size_t len = iov[0].iov_len + iov[1].iov_len;

	(void)of;
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

static uint64_t cookie(const struct dial *of)
{
	return of->ops ? 4711 : 0;
}

static void begun(struct dial *of)
{
	(void)of;
	kernel.begun++;
}

static void info(struct dial *of, struct tcp_info *out)
{
	(void)of;
	*out = kernel.info;
	kernel.now += kernel.look_takes;
}

static bool fell_back(struct dial *of)
{
	(void)of;
	return kernel.fell_back;
}

static int socket_error(struct dial *of)
{
	const int error = kernel.error;

	(void)of;
	kernel.error = 0;
	return error;
}

static ssize_t peek(struct dial *of, uint8_t *buffer, size_t size, bool *ended)
{
	const size_t len = ended || !kernel.shown ? kernel.len : kernel.shown;

	(void)of;
	note("peek; ");
	ck_assert_uint_le(len, size);
	if (kernel.read_error)
		return -kernel.read_error;
	if (ended)
		*ended = kernel.shut;
	memcpy(buffer, kernel.stream, len);
	return len || kernel.shut ? (ssize_t)len : -EAGAIN;
}

static bool take(struct dial *of, size_t bytes)
{
	(void)of;
	note("take %zu; ", bytes);
	return !kernel.lost_bytes;
}

static bool keepalive(struct dial *of, int seconds)
{
	(void)of;
	note("probe %d; ", seconds);
	return !kernel.unprobed;
}

static void watch(struct dial *of)
{
	(void)of;
	kernel.watched++;
}

static void wake(struct dial *of, int64_t at)
{
	(void)of;
	kernel.wake_at = at;
}

static void disconnect(struct dial *of)
{
	(void)of;
	note("end; ");
}

const struct dial_ops ops = {
	.query = query, .allows = allows, .repeat_key = number, .fit = fit, .prepare = prepare, .connect = connect_to, .defer = defer,
	.send = output, .begun = begun, .cookie = cookie, .info = info, .fell_back = fell_back, .error = socket_error, .peek = peek, .take = take,
	.keepalive = keepalive, .watch = watch, .wake = wake, .disconnect = disconnect,
};

/* --- the script --- */


struct dial dial;
struct dial_end end;

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0     ? addresses :
	       strcmp(name, "CONVERT_CACHE") == 0    ? cache_setting :
						       NULL;
}

void setup(void)
{
	static const struct dial_host host = { .settings = &settings, .log = log_keep, .clock = clock_of_script };

	kernel = (struct kernel){ .now = clock_ns(), .takes = 4096, .syn_takes = 4096 };
	nets = (struct networks){ .what = PATHS_WAIT, .begins = true, .elsewhere = -1, .chosen = -1, .missed = -1, .answer = SURVEY_SILENT };
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	settings.bypass_mptcp = false;
	user_cache_init(&settings);
	converters_init(&settings);
	dial_init(&host);
}

static char directory[PATH_MAX];

void setup_cached(void)
{
	tempdir_make(directory);
	cache_setting = directory;
	setup();
	user_cache_open(-1);
	ck_assert(cache_is_on(user_cache()));
}

void teardown_cached(void)
{
	tempdir_remove(directory);
}

void setup_named(void)
{
	addresses = "converter.example";
	setup();
}

enum dial_state dial_begin(bool holds)
{
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = true };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	lines[0] = kernel.done[0] = '\0';
	return dial_next(&dial, holds, &end);
}

enum dial_state step(void)
{
	return dial_step(&dial, &end);
}

static enum dial_state state_on_stack;

static void step_by_signal(int number)
{
	(void)number;
	state_on_stack = step();
}

enum dial_state step_on_small_stack(void)
{
	static char room[65536];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_handler = step_by_signal, .sa_flags = SA_ONSTACK };

	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	return state_on_stack;
}

void synack(uint8_t options)
{
	said();
	kernel.info = (struct tcp_info){ .tcpi_state = TCPINFO_ESTABLISHED, .tcpi_options = options, .tcpi_rtt = 10000 };
}


void answer(enum answer what)
{
	const struct convert_withholding withholding = { .withheld = true, .limit_ms = what == HOLDING ? 2000 : 700, .corrects = true,
							 .silent = what == SILENCE, .blind = what == SILENCE, .repeats = what == SILENCE,
							 .hold_times = what == HOLDING };
	static const uint8_t mptcp = 30;
	struct convert_writer writer;

	convert_writer_init(&writer, kernel.stream, sizeof(kernel.stream));
	if (what == SUPPORTED || what == SILENCE || what == HOLDING) {
		convert_write_supported(&writer, &mptcp, 1);
		convert_write_withholding(&writer, kernel.offers ? kernel.offers : &withholding);
	}
	if (what == WHOLE || what == SUPPORTED || what == SILENCE || what == HOLDING)
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

void learn(enum answer what)
{
	ck_assert_int_eq(dial_begin(false), DIAL_IN_PROGRESS);
	synack(TAKEN);
	answer(what);
	ck_assert_int_eq(step(), DIAL_REACHED);
}
