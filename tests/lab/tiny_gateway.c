/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiny_gateway.c - a transparent gateway made of src/hold, src/serve and src/relay, which knows nothing of the Convert Protocol
 *
 *     tiny_gateway PORT QUEUE
 *
 * The test's rules divert clients' packets to PORT (TPROXY), and put their SYNs into netfilter queue QUEUE first. The judge takes the
 * packet's own destination for the server. The dialler has state, as a client's engine does: it first asks a port of this host that is
 * closed, and after that refusal goes on with another socket, a moment later. It can't dial port 84: those SYNs go on as they came, and are
 * routed. One worker, no main process, no sandbox.
 */
#include "config.h"

#include "common/clock.h"
#include "daemon/far_clients.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/warden_message.h"
#include "hold/hold_queue.h"
#include "hold/hold_table.h"
#include "relay/relay.h"
#include "serve/listening.h"
#include "serve/syn_judge.h"
#include "serve/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct queue_owner *owner;

/* ----- calls that need rights: this process has them ----- */

int rights_get_queue(size_t index, int *packets, int *verdicts)
{
	*packets = fcntl(queue_owner_packets(owner, index), F_DUPFD_CLOEXEC, 0);
	*verdicts = -1;
	return *packets < 0 ? -errno : 0;
}

bool rights_give_verdicts(size_t index, int fd, const uint8_t *verdicts, size_t len)
{
	(void)fd;
	return queue_owner_carry_out(owner, index, verdicts, len, NULL, NULL);
}

void rights_give_queue_up(size_t index, int fd)
{
	(void)fd;
	queue_owner_close(owner, index);
}

int rights_bind(int fd, const union sockaddr_ip *address)
{
	static const int on = 1;

	if (setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0)
		return -errno;
	return bind(fd, &address->sa, sockaddr_ip_len(address)) < 0 ? -errno : 0;
}

int congestion_set(int fd, const char *name)
{
	(void)fd, (void)name;
	return 0;
}

/* ----- the judge ----- */

static void judge(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	socklen_t len = sizeof(verdict->server);

	(void)answer;
	*verdict = (struct serve_verdict){
		.action = REQUEST_CONNECT, .voice = JUDGEMENT_SILENT, .silent = true, .blind = true, .hold_ms = UINT_MAX,
	};
	if (c->flow)
		sockaddr_ip_set(&verdict->server, AF_UNSPEC, &c->flow->destination, c->flow->destination_port);
	else if (getsockname(c->fd, &verdict->server.sa, &len) < 0)
		verdict->action = REQUEST_RESET;
	verdict->by_grant = c->grant != NULL;
	verdict->grant = c->grant;
	verdict->withhold = c->place == JUDGEMENT_SYN &&
			    limits_enter(context->limits, c->member, &c->client.address, LIMITS_WITHHELD) == 0;
}

/* A session of a gateway writes nothing of its own. */
static void answer_nothing(struct serve_context *context, uint8_t mark, const struct serve_refusal *refusal, struct serve_answer *answer)
{
	(void)context, (void)mark, (void)refusal;
	answer->reason = "refused";
	answer->outcome = OUTCOME_SERVER_REFUSED;
	answer->len = 0;
}

/* ----- the dialler ----- */

#define CLOSED_PORT 1
#define ROUTED_PORT 84
#define PAUSE_MS 50

struct dialling {
	union sockaddr_ip server;
	bool paused, second;
};

static int begin_connect(const union sockaddr_ip *to)
{
	int fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	error = connect(fd, &to->sa, sockaddr_ip_len(to)) < 0 ? errno : 0;
	if (!error || error == EINPROGRESS || error == ECONNREFUSED)
		return fd;
	close(fd);
	return -error;
}

static int dial_begin(struct serve_context *context, const struct serve_plan *plan, struct serve_dial *dial)
{
	struct dialling *state;
	union sockaddr_ip closed;
	int fd;

	(void)context;
	sockaddr_ip_parse(&closed, "127.0.0.1", CLOSED_PORT);
	fd = begin_connect(&closed);
	*dial = (struct serve_dial){ .fd = -1 };
	if (fd < 0)
		return fd;
	state = calloc(1, sizeof(*state));
	if (!state) {
		close(fd);
		return -ENOMEM;
	}
	state->server = *plan->server;
	*dial = (struct serve_dial){ .fd = fd, .state = state, .wake_ms = clock_now_ms() + PAUSE_MS };
	return 0;
}

/* The first socket has been refused: after a pause, another one asks the server. */
static int ask_the_server(struct serve_dial *dial, struct dialling *state)
{
	int fd;

	if (clock_now_ms() < dial->wake_ms)
		return -EINPROGRESS;
	if (sockaddr_ip_port(&state->server) == ROUTED_PORT)
		return -ENETDOWN;
	fd = begin_connect(&state->server);
	if (fd < 0)
		return fd;
	close(dial->fd);
	dial->fd = fd;
	dial->wake_ms = clock_now_ms() + 1000 * PAUSE_MS;
	state->second = true;
	return -EINPROGRESS;
}

static int dial_step(struct serve_context *context, struct serve_dial *dial, struct tcp_info *info)
{
	struct dialling *state = dial->state;
	socklen_t len = sizeof(*info), error_len = sizeof(int);
	int error = 0;

	(void)context;
	if (!state->second)
		return ask_the_server(dial, state);
	if (getsockopt(dial->fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0)
		return -errno;
	if (info->tcpi_state != TCP_SYN_SENT && info->tcpi_state != TCP_CLOSE)
		return 0;
	getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
	return error ? -error : -EINPROGRESS;
}

static void dial_settle(struct serve_context *context, struct serve_dial *dial, const union sockaddr_ip *server)
{
	(void)context, (void)server;
	free(dial->state);
	dial->state = NULL;
}

static void dial_stop(struct serve_context *context, struct serve_dial *dial)
{
	(void)context;
	free(dial->state);
	dial->state = NULL;
	if (dial->fd < 0)
		return;
	relay_reset(dial->fd);
	close(dial->fd);
	dial->fd = -1;
}

static void dial_proven(struct serve_context *context, struct serve_dial *dial, unsigned repeat)
{
	(void)context, (void)dial, (void)repeat;
}

static void dial_reached(struct serve_context *context, const union sockaddr_ip *server)
{
	(void)context, (void)server;
}

static struct serve_refusal dial_refusal(struct serve_context *context, const struct serve_dial *dial, const union sockaddr_ip *server,
					 bool client_v4, uint64_t asked_ms, int error)
{
	(void)context, (void)dial, (void)server, (void)asked_ms;
	return (struct serve_refusal){ .passes = error == -ENETDOWN, .native = error == -ECONNREFUSED ? NATIVE_RESET : native_no_host(client_v4) };
}

static bool dial_silence(struct serve_context *context, const union sockaddr_ip *server, uint64_t asked_ms)
{
	(void)context, (void)server, (void)asked_ms;
	return false;
}

/* ----- the daemon ----- */

static int start(struct serve_context *context, void *arg)
{
	(void)arg;
	context->metrics = aligned_alloc(_Alignof(struct metrics), sizeof(struct metrics));
	context->log_limits = calloc(OUTCOME_COUNT, sizeof(struct log_limit));
	if (!context->metrics || !context->log_limits)
		return -ENOMEM;
	memset(context->metrics, 0, sizeof(struct metrics));
	return 0;
}

static void stop(struct serve_context *context)
{
	free(context->metrics);
	free(context->log_limits);
}

static void configure(struct serve_context *context, const struct serve_settings *settings)
{
	(void)context, (void)settings;
}

static const struct serve_plugs plugs = {
	.judge = judge,
	.refused = answer_nothing,
	.dial = { dial_begin, dial_step, dial_proven, dial_reached, dial_settle, dial_stop, dial_refusal, dial_silence },
	.start = start,
	.stop = stop,
	.configure = configure,
	.at_once = true,
};

static const struct serve_settings settings = {
	.number = 1, .request_ms = 5000, .connect_ms = 10000, .patience_ms = 20000, .hold_ms = 3500, .synacks = 6, .pipes_max = 16,
	.refuses_syns = true,
};

static struct syn_judge *syns;
static struct acceptor *acceptor;

static void serve(const struct worker_context *worker, void *arg)
{
	(void)arg;
	session_pool_configure(worker->pool, &settings);
	syn_judge_again(syns);
	if (syn_judge_start(syns) < 0)
		abort();
	acceptor_start(acceptor);
}

int main(int argc, char **argv)
{
	const struct limits_settings limits = { .pending.total = 4096, .prefix_v4 = 32, .prefix_v6 = 64 };
	static struct session_shared shared = { .plugs = &plugs };
	struct listen_address where = { 0 };
	struct problems problems = { 0 };
	struct listener *listener;
	struct workers *workers;

	if (argc != 3 || queue_owner_create(&owner, (uint16_t)atoi(argv[2]), 1) < 0)
		return 2;
	log_set_level(LOG_LEVEL_DEBUG);
	shared.limits = limits_create();
	limits_configure(shared.limits, &limits);
	shared.withheld = hold_table_create();
	shared.far_clients = far_clients_create();
	workers = workers_create(1, &shared);
	sockaddr_ip_parse(&where.address, "0.0.0.0", (uint16_t)atoi(argv[1]));
	listener = listener_create(&where, 1, NULL, 0, &problems);
	if (!workers || !listener || !listener_listen(listener, &problems))
		return 2;
	syns = syn_judge_create(&workers_context(workers, 0)->pool->context);
	acceptor = acceptor_create(listener, workers_context(workers, 0));
	if (!syns || !acceptor || syn_judge_open(syns, 0) < 0)
		return 2;
	workers_order(workers, serve, NULL);
	for (;;)
		pause();
}
