/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic_keeper.c - inside the service: counts bytes, keeps the sums in the file, and makes the quotas' states part of the choice
 *
 * A look costs one list of devices, and one of Multipath TCP connections. With quotas we look each second, so that a fast network exceeds
 * its limit by a second's bytes at most; without, each ten seconds. We write the file each minute, when a state changes or a connection has
 * outlived a network, and at the end. A kill loses nothing, as the kernel counts on. A loss of power loses a minute.
 */
#include "config.h"

#include "paths/mend.h"

#include "common/clock.h"
#include "common/kernel_socket.h"
#include "common/os.h"
#include "common/tcp.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS (10 * CLOCK_NS_PER_S)
#define QUOTA_LOOK_NS CLOCK_NS_PER_S
#define SAVE_NS (60 * CLOCK_NS_PER_S)

static void boot_read(char boot[static TRAFFIC_BOOT_MAX])
{
	file_read_text("/proc/sys/kernel/random/boot_id", boot, TRAFFIC_BOOT_MAX);
	boot[strcspn(boot, "\n")] = '\0';
	if (!*boot)
		strcpy(boot, "unknown");
}

int traffic_look(struct traffic *traffic, const struct traffic_choice *choice, struct netlink *netlink)
{
	struct host host = { .link_count = 0 };
	char boot[TRAFFIC_BOOT_MAX];
	int ret = host_links_read(&host, netlink);

	boot_read(boot);
	if (ret == 0)
		traffic_count(traffic, choice, boot, host.links, host.link_count, traffic_today());
	host_fini(&host);
	return ret;
}

/* Writes the user's list, and behind it the devices whose quotas are in the state. Returns @buf, or NULL if there are none. */
static const char *list(const char *own, const struct paths_choice *choice, enum quota_state state, char buf[static TRAFFIC_LISTS_MAX])
{
	size_t len = (size_t)snprintf(buf, TRAFFIC_LISTS_MAX, "%s", own ? own : "");

	for (size_t i = 0; i < choice->quotas.count && len < TRAFFIC_LISTS_MAX; i++)
		if (choice->quota_states[i] == state)
			len += (size_t)snprintf(buf + len, TRAFFIC_LISTS_MAX - len, "%s%s", len ? "," : "", choice->quotas.list[i].device);
	return len ? buf : NULL;
}

/* Judges the quotas, reports changes, and sets the mender's choice. Returns whether it has changed. */
static bool judge(struct traffic_keeper *keeper, struct paths_choice *choice)
{
	const unsigned int today = traffic_today();
	bool changed = false;

	for (size_t i = 0; i < choice->quotas.count; i++) {
		const struct quota *quota = &choice->quotas.list[i];
		const uint64_t used = quota_used(quota, &keeper->traffic, today);
		const enum quota_state state = quota_judge(quota, used);
		char text[QUOTA_TEXT_MAX];

		if (state == choice->quota_states[i])
			continue;
		paths_say("%s: %s", quota->device, quota_text(quota, used, text));
		choice->quota_states[i] = state;
		changed = true;
	}
	if (!changed)
		return false;
	choice->policy.never = list(keeper->own_never, choice, QUOTA_NEVER, keeper->never);
	choice->policy.backup = list(keeper->own_backup, choice, QUOTA_BACKUP, keeper->backup);
	return true;
}

/* --- connections that outlive a network --- */

#define STATES (1u << TCPINFO_ESTABLISHED) /* a connection that closes loses subflows as well, but has outlived nothing */

static int note_outlived(const struct nlmsghdr *message, void *arg)
{
	struct kernel_mptcp_info info = { .flags = 0 };
	struct traffic_tokens *out = arg;

	if (netlink_read_socket_info(message, &info, sizeof(info)) && kernel_has_outlived(&info) && out->count < TRAFFIC_TOKENS_MAX)
		out->list[out->count++] = info.token;
	return MNL_CB_OK;
}

static bool has_token(const struct traffic_tokens *tokens, uint32_t token)
{
	for (size_t i = 0; i < tokens->count; i++)
		if (tokens->list[i] == token)
			return true;
	return false;
}

/* Counts the connections that have outlived a network since the last look. Those that end between two looks are missing. */
static void count_outlived(struct traffic_keeper *keeper)
{
	struct traffic_tokens now = { .known = true };
	static struct netlink netlink;
	size_t fresh = 0;
	int ret;

	if (netlink_open(&netlink, NETLINK_SOCK_DIAG) < 0)
		return;
	ret = netlink_dump_sockets(&netlink, IPPROTO_MPTCP, STATES, note_outlived, &now);
	netlink_close(&netlink);
	if (ret < 0)
		return;
	for (size_t i = 0; i < now.count && keeper->outlived.known; i++)
		fresh += !has_token(&keeper->outlived, now.list[i]);
	keeper->outlived = now;
	if (!fresh)
		return;
	traffic_add_outlived(&keeper->traffic, fresh, traffic_today());
	keeper->save_at = 0; /* save at once: the kernel shows such a connection only while it is open */
}

/* --- looks --- */

static int count_devices(struct traffic_keeper *keeper, struct paths_mender *mender)
{
	const struct traffic_choice choice = { mender->wanted.networks, mender->wanted.count, &mender->choice.quotas };

	return traffic_look(&keeper->traffic, &choice, &mender->kernel.route);
}

/* Takes over the file's sums, and the kernel's counters of that time: so no bytes since then are missing. */
static void load_traffic(struct traffic_keeper *keeper)
{
	static struct traffic found;
	int ret = traffic_load(&found);

	if (ret == 0)
		keeper->traffic = found;
	else if (!keeper->told)
		paths_say("the bytes that were counted before can't be read: %s; quotas begin at zero until they can", strerror(-ret));
	keeper->loaded = ret == 0;
	keeper->told = ret < 0;
}

static void save_traffic(struct traffic_keeper *keeper)
{
	int ret = keeper->keeps ? traffic_save(&keeper->traffic) : 0;

	if (ret < 0 && !keeper->told)
		paths_say("the bytes of each network can't be kept over restarts: %s; make the service's directory writable", strerror(-ret));
	keeper->told = ret < 0;
	keeper->save_at = clock_ns() + SAVE_NS;
}

void traffic_keeper_begin(struct traffic_keeper *keeper, struct paths_mender *mender, bool keeps)
{
	keeper->keeps = keeps;
	keeper->own_never = mender->choice.policy.never;
	keeper->own_backup = mender->choice.policy.backup;
	traffic_keeper_look(keeper, mender);
	keeper->look_at = keeper->save_at = 0; /* at once after paths_mend(), when the networks are known */
}

bool traffic_keeper_look(struct traffic_keeper *keeper, struct paths_mender *mender)
{
	bool changed;

	keeper->look_at = clock_ns() + (mender->choice.quotas.count ? QUOTA_LOOK_NS : LOOK_NS);
	if (!keeper->loaded)
		load_traffic(keeper);
	count_outlived(keeper);
	if (count_devices(keeper, mender) < 0)
		return false; /* at the next look */
	changed = judge(keeper, &mender->choice);
	if (keeper->loaded && (changed || clock_ns() >= keeper->save_at))
		save_traffic(keeper);
	return changed;
}

void traffic_keeper_end(struct traffic_keeper *keeper, struct paths_mender *mender)
{
	if (keeper->loaded && count_devices(keeper, mender) == 0)
		save_traffic(keeper);
}
