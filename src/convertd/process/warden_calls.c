/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden_calls.c - carries out calls that need a right, in the main process, if the settings need them
 *
 * We trust nothing that comes from the serving process: an attacker may have taken it over. A call has a fixed size
 * and is of one of few kinds (warden_message.h). It may only ask for things that the settings need, which this
 * process has read by itself (warden_policy.c). So an attacker can make the main process do only what convertd is
 * configured to do, perhaps in another order.
 *
 * State: the policy, and the rules and queues in force. A SIGHUP adds the needs of the new settings to the policy
 * (warden_calls_reload()). When the serving process reports that the new settings are in force, we drop what only the
 * old ones needed. Rules and queues end with warden_calls_destroy().
 *
 * The main process owns the rules and queues for SYNs, since they need CAP_NET_ADMIN: nftables rules (hold_rules.c)
 * that put SYNs into queues, and the queues (queue_owner.c), each with a socket for verdicts. The serving process asks
 * for them in this order: own queues, get the sockets of each queue, install rules. Each further call replaces the
 * rules; for new queues we give up the old ones first.
 */
#include "config.h"

#include "convertd/process/warden.h"

#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/process/systemd.h"
#include "hold/hold_rules.h"
#include "hold/hold_queue.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct warden_calls {
	int argc;
	char **argv;
	struct warden_policy policy;
	struct listen_address units[LISTEN_ADDRESSES_MAX]; /* the addresses of sockets from socket units */
	size_t units_count;
	struct hold_rules *rules;    /* NULL: neither this process nor the one before it has installed any */
	struct queue_owner *queues;  /* NULL: there are none */
};

/* Installs rules for a call, with or without queues. Returns 0 with @passed set, or -errno. */
static int set_rules(struct warden_calls *calls, const struct warden_call *call, struct warden_answer *answer, int *passed)
{
	struct hold_rules_queues queues = { 0 };
	bool refuses = false;
	int error = 0;

	if (call->queues && !calls->queues)
		return -EINVAL;
	if (call->queues)
		queues = (struct hold_rules_queues){ queue_owner_first(calls->queues),
						    (uint16_t)queue_owner_count(calls->queues) };
	if (!calls->rules)
		error = hold_rules_create(&calls->rules, "convertd", -1);
	if (!error)
		error = hold_rules_install(calls->rules, call->listen, call->count,
					  call->queues ? &queues : NULL, &refuses);
	answer->number = refuses;
	if (!error)
		*passed = hold_rules_fd(calls->rules);
	return error;
}

/* Gives up the queues, and makes @count others. Returns 0 or -errno. */
static int own_queues(struct warden_calls *calls, size_t count, struct warden_answer *answer)
{
	int error;

	queue_owner_destroy(calls->queues);
	calls->queues = NULL;
	if (!count)
		return 0;
	/* The numbers of queues begin at the port that convertd listens on, which few other programs use for a queue. */
	error = queue_owner_create(&calls->queues, sockaddr_ip_port(&calls->policy.latest.listen[0].address),
				   count);
	if (!error)
		answer->number = queue_owner_first(calls->queues);
	return error;
}

/* Returns 0 with @passed set to a socket of one of the queues, or -errno. */
static int pass_queue(struct warden_calls *calls, const struct warden_call *call, int *passed)
{
	if (!calls->queues || call->index >= queue_owner_count(calls->queues))
		return -EINVAL;
	*passed = call->kind == WARDEN_CALL_QUEUE ?
			  queue_owner_packets(calls->queues, call->index) :
			  queue_owner_take_verdicts(calls->queues, call->index);
	return *passed < 0 ? -EINVAL : 0;
}

size_t warden_calls_poll(const struct warden_calls *calls, struct pollfd fds[WARDEN_QUEUES_MAX])
{
	size_t count = calls->queues ? queue_owner_count(calls->queues) : 0;

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = queue_owner_socket(calls->queues, i),
					  .events = POLLIN };
	return count;
}

static bool allows_syn(const void *policy, const struct in6_addr *destination, uint16_t port)
{
	return warden_policy_allows_syn(policy, destination, port);
}

bool warden_calls_serve(struct warden_calls *calls, const struct pollfd fds[WARDEN_QUEUES_MAX])
{
	size_t count = calls->queues ? queue_owner_count(calls->queues) : 0;
	bool right = true;

	for (size_t i = 0; i < count; i++)
		if (fds[i].revents && fds[i].fd >= 0 &&
		    fds[i].fd == queue_owner_socket(calls->queues, i))
			right &= queue_owner_serve(calls->queues, i, allows_syn, &calls->policy);
	return right;
}

struct warden_calls *warden_calls_create(int argc, char **argv, const struct convertd_settings *settings,
					 const struct inherited *inherited)
{
	struct warden_calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	if (inherited->rules >= 0 && hold_rules_create(&calls->rules, "convertd", inherited->rules) < 0)
		log_debug("the rules of the process before this one are not taken over");
	calls->argc = argc;
	calls->argv = argv;
	for (size_t i = 0; i < inherited->count && calls->units_count < LISTEN_ADDRESSES_MAX; i++)
		if (!inherited->sockets[i].kept)
			calls->units[calls->units_count++] = inherited->sockets[i].where;
	warden_grant_init(&calls->policy.latest, settings, calls->units, calls->units_count);
	calls->policy.in_force = calls->policy.latest;
	return calls;
}

void warden_calls_destroy(struct warden_calls *calls)
{
	if (!calls)
		return;
	queue_owner_destroy(calls->queues);
	hold_rules_destroy(calls->rules);
	free(calls);
}

void warden_calls_reload(struct warden_calls *calls)
{
	struct problems problems = { 0 };
	struct convertd_settings *settings = convertd_settings_read(calls->argc, calls->argv, &problems);

	if (!settings)
		return;
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
	warden_grant_init(&calls->policy.latest, settings, calls->units, calls->units_count);
	convertd_settings_destroy(settings);
}

/* Returns 0, or -errno if a system call has returned @ret < 0. */
static int result(int ret)
{
	return ret < 0 ? -errno : 0;
}

static int set_transparent(int fd, bool v4)
{
	static const int on = 1;

	return result(v4 ? setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) :
			   setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof(on)));
}

/*
 * Carries out a call that the policy allows. Returns 0 or -errno.
 * @given: the descriptor that came with the call
 * @passed: set to the descriptor that goes with the answer, if there is one
 */
static int carry_out(struct warden_calls *calls, const struct warden_call *call, int given,
		     struct warden_answer *answer, int *passed)
{
	const union sockaddr_ip *address = &call->listen[0].address;

	switch ((enum warden_call_kind)call->kind) {
	case WARDEN_CALL_RULES:
		return set_rules(calls, call, answer, passed);
	case WARDEN_CALL_QUEUES:
		return own_queues(calls, call->count, answer);
	case WARDEN_CALL_QUEUE:
	case WARDEN_CALL_VERDICTS:
		return pass_queue(calls, call, passed);
	case WARDEN_CALL_BIND:
		return result(bind(given, &address->sa, sockaddr_ip_len(address)));
	case WARDEN_CALL_TRANSPARENT:
		return set_transparent(given, call->v4);
	case WARDEN_CALL_CONGESTION:
		return congestion_set(given, call->congestion);
	case WARDEN_CALL_IN_FORCE:
		calls->policy.in_force = calls->policy.latest;
		return 0;
	case WARDEN_CALL_NOTICE:
		notify_forward(call->text, given);
		return 0;
	case WARDEN_CALL_LEAVE:
		return 0;
	case WARDEN_CALL_KIND_COUNT:
		break;
	}
	return -EINVAL;
}

/* Logs that a call is refused. This may not be an attack: the files may have changed after one process has read them. */
static int refuse(const struct warden_call *call)
{
	log_warning("the serving process asks for something that no settings need (%u); if they have just "
		    "changed, reload them once more",
		    (unsigned)call->kind);
	return -EACCES;
}

static void answer_one(struct warden_calls *calls, int fd, const struct warden_call *call,
		       int given)
{
	struct warden_answer answer;
	int passed = -1;

	memset(&answer, 0, sizeof(answer));
	if (warden_policy_allows(&calls->policy, call))
		answer.error = carry_out(calls, call, given, &answer, &passed);
	else
		answer.error = refuse(call);
	fdpass_send(fd, &answer, sizeof(answer), passed);
	/* All other descriptors stay open here. */
	if (passed >= 0 && call->kind == WARDEN_CALL_VERDICTS)
		close(passed);
}

bool warden_calls_answer(struct warden_calls *calls, int *fd, bool *left)
{
	struct warden_call call;
	int given;
	ssize_t len = fdpass_receive(*fd, &call, sizeof(call), false, &given);
	bool right = len == 0 || len == -EAGAIN || len == -ECONNRESET;

	if (len > 0) {
		right = warden_call_is_right(&call, (size_t)len, given >= 0) &&
			(call.kind != WARDEN_CALL_NOTICE || notify_message_is_right(call.text));
		*left = right && call.kind == WARDEN_CALL_LEAVE;
		if (right)
			answer_one(calls, *fd, &call, given);
		else
			log_error("the serving process sends an unknown message");
	}
	if (given >= 0)
		close(given);
	if (len == 0 || len == -ECONNRESET) {
		close(*fd);
		*fd = -1;
	}
	return right;
}
