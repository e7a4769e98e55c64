/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_warden.c - any bytes as what the serving process tells the main process, which has the rights
 *
 * The first byte says what it is: a message for the service manager, a call, or verdicts. Whatever counts as right must be
 * something that convertd could send, within its bounds, and a call that no settings need must be refused.
 * To search for new inputs see fuzz_request.c; the sources are src/convertd/process/warden_policy.c and those that the linker
 * asks for, such as src/daemon/warden_message.c and src/hold/syn_packet.c.
 */
#include "config.h"

#include "convertd/config/convertd_settings.h"
#include "convertd/process/warden.h"
#include "convertd/process/systemd.h"
#include "daemon/warden_message.h"
#include "hold/syn_packet.h"
#include "problem_lines.h"

#include <stdlib.h>
#include <string.h>

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : abort())

/* The only port that the policy allows. */
#define PORT 1234

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct warden_policy make_policy(void)
{
	struct warden_policy policy;

	memset(&policy, 0, sizeof(policy));
	policy.in_force.listen[0].address.in6.sin6_family = AF_INET6;
	sockaddr_ip_set_port(&policy.in_force.listen[0].address, PORT);
	policy.in_force.listen_count = 1;
	policy.in_force.withhold = true;
	return policy;
}

static void check_notice(const char *text, size_t len)
{
	char *copy = text_of((const uint8_t *)text, len);

	if (notify_message_is_right(copy)) {
		REQUIRE(copy[0]);
		/* No line may begin with either of these. */
		REQUIRE(strncmp(copy, "MAINPID", 7) != 0 && !strstr(copy, "\nMAINPID"));
		REQUIRE(strncmp(copy, "NOTIFYACCESS", 12) != 0 && !strstr(copy, "\nNOTIFYACCESS"));
		REQUIRE(copy[0] != '\n' && !strstr(copy, "\n\n"));
	}
	free(copy);
}

/* Where the input is too short, the rest of the call is zero. */
static void check_call(const uint8_t *data, size_t size)
{
	struct warden_policy policy = make_policy();
	struct warden_call call;
	bool passed = size & 1;

	if (size != sizeof(call))
		REQUIRE(!warden_call_is_right((const struct warden_call *)data, size, passed));
	memset(&call, 0, sizeof(call));
	memcpy(&call, data, size < sizeof(call) ? size : sizeof(call));
	if (!warden_call_is_right(&call, sizeof(call), passed))
		return;
	REQUIRE(call.kind < WARDEN_CALL_KIND_COUNT);
	REQUIRE(call.count <= SETTINGS_WORKERS_MAX && call.index < SETTINGS_WORKERS_MAX);
	if (!warden_policy_allows(&policy, &call))
		return;
	REQUIRE(call.kind != WARDEN_CALL_TRANSPARENT && call.kind != WARDEN_CALL_CONGESTION);
	if (call.kind == WARDEN_CALL_RULES || call.kind == WARDEN_CALL_BIND)
		REQUIRE(sockaddr_ip_port(&call.listen[0].address) == PORT);
}

static void check_verdicts(const uint8_t *data, size_t size)
{
	struct warden_policy policy = make_policy();
	struct warden_verdict verdict;
	const uint8_t *packet;
	struct syn_packet syn;
	size_t at = 0, before = 0;

	for (; warden_verdict_next(data, size, &at, &verdict, &packet); before = at) {
		REQUIRE(at == before + sizeof(verdict) + verdict.len && at <= size);
		REQUIRE(verdict.accept <= 1 && (packet != NULL) == (verdict.len != 0));
		REQUIRE(!packet || (verdict.accept && packet + verdict.len == data + at));
		if (packet && syn_packet_parse(packet, verdict.len, &syn) == SYN_PACKET_OK &&
		    warden_policy_allows_syn(&policy, &syn.flow.destination, syn.flow.destination_port))
			REQUIRE(syn.flow.destination_port == PORT);
	}
	REQUIRE(at == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % 3) {
	case 0:
		check_notice((const char *)data + 1, size - 1);
		break;
	case 1:
		check_call(data + 1, size - 1);
		break;
	case 2:
		check_verdicts(data + 1, size - 1);
		break;
	}
	return 0;
}
