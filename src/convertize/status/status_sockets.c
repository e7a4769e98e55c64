/* SPDX-License-Identifier: BSD-3-Clause */
/* status_sockets.c - the sockets of this network namespace, the networks of their addresses, and the processes that hold them */
#include "config.h"

#include "convertize/status/status.h"

#include "common/clock.h"
#include "common/netlink.h"
#include "host/host_model.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bits of include/net/tcp_states.h: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING. */
#define STATES (1u << 1 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9 | 1u << 11)
#define READS_MAX 3 /* of a list that changes meanwhile */

struct reading {
	struct status_sockets *out;
	bool mptcp;
};

static int on_socket(const struct nlmsghdr *message, void *arg)
{
	const struct inet_diag_msg *found = mnl_nlmsg_get_payload(message);
	struct reading *reading = arg;
	struct status_sockets *out = reading->out;
	struct status_socket *socket;
	struct tcp_info info = { 0 };
	const struct nlattr *attr;
	size_t len;

	/* without an inode the program has closed it, and the kernel sends the rest */
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*found) || !found->idiag_inode)
		return MNL_CB_OK;
	if (out->count == out->room) {
		struct status_socket *more = realloc(out->list, (out->room * 2 + 64) * sizeof(*more));

		if (!more)
			return MNL_CB_OK;
		out->list = more;
		out->room = out->room * 2 + 64;
	}
	mnl_attr_for_each(attr, message, sizeof(*found))
		if (mnl_attr_get_type(attr) == INET_DIAG_INFO && !reading->mptcp) {
			len = mnl_attr_get_payload_len(attr);
			memcpy(&info, mnl_attr_get_payload(attr), len < sizeof(info) ? len : sizeof(info));
		}
	socket = &out->list[out->count++];
	*socket = (struct status_socket){
		.cookie = (uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0],
		.inode = found->idiag_inode,
		.uid = found->idiag_uid,
		.mptcp = reading->mptcp,
		.local = netlink_socket_address(found, false),
		.peer = netlink_socket_address(found, true),
		.received = info.tcpi_bytes_received,
		.sent = info.tcpi_bytes_acked ? info.tcpi_bytes_acked - 1 : 0, /* without the SYN, which it counts */
	};
	sockaddr_ip_set_port(&socket->local, 0);
	return MNL_CB_OK;
}

int status_sockets_read(struct status_sockets *out)
{
	static struct netlink netlink;
	int ret = netlink_open(&netlink, NETLINK_SOCK_DIAG), tcp;

	if (ret < 0)
		return ret;
	for (int i = 0; i == 0 || (ret == -EINTR && i < READS_MAX); i++) {
		out->count = 0;
		/* fails where the kernel has no Multipath TCP: then there is only TCP */
		netlink_dump_sockets(&netlink, IPPROTO_MPTCP, STATES, 0, on_socket, &(struct reading){ out, true });
		tcp = netlink_dump_sockets(&netlink, IPPROTO_TCP, STATES, 0, on_socket, &(struct reading){ out, false });
		ret = tcp;
	}
	out->read = clock_ns();
	netlink_close(&netlink);
	return ret == -EINTR ? 0 : ret;
}

int status_homes_read(struct status_parts *out)
{
	struct host host;
	int ret = host_read(&host, NULL, NULL);

	out->home_count = 0;
	if (ret < 0)
		return ret;
	free(out->homes);
	out->homes = calloc(host.address_count + 1, sizeof(*out->homes));
	for (size_t i = 0; out->homes && i < host.address_count; i++) {
		const struct host_link *link = host_link_of(&host, host.addresses[i].index);
		struct status_home *home = &out->homes[out->home_count];

		if (!link)
			continue;
		home->address = host.addresses[i].address;
		strcpy(home->device, link->name);
		out->home_count++;
	}
	host_fini(&host);
	return out->homes ? 0 : -ENOMEM;
}

/* --- processes --- */

static int compare(const void *a, const void *b)
{
	const struct status_owner *one = a, *other = b;

	return one->inode < other->inode ? -1 : one->inode > other->inode;
}

/* Reads the name that a program has given itself, or its file's. */
static void program_read(const char *number, char name[static STATUS_PROGRAM_MAX])
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, name, STATUS_PROGRAM_MAX - 1);
	if (fd >= 0)
		close(fd);
	name[len > 0 ? len : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

/* Finds the sockets among a process's descriptors. A supervisor holds its programs' sockets only for a moment, and doesn't count. */
static void process_look(struct status_parts *parts, const char *number)
{
	char path[64], link[64];
	struct status_owner key = { 0 }, *owner;
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", number);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		ssize_t len = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		if (sscanf(link, "socket:[%" SCNu32 "]", &key.inode) != 1)
			continue;
		owner = bsearch(&key, parts->owners, parts->owner_count, sizeof(key), compare);
		if (!owner || (owner->pid && strcmp(owner->program, "convertize") != 0))
			continue;
		owner->pid = (pid_t)strtol(number, NULL, 10);
		program_read(number, owner->program);
	}
	if (directory)
		closedir(directory);
}

bool status_owners_find(struct status_parts *parts)
{
	struct status_owner *owners = calloc(parts->sockets.count + 1, sizeof(*owners));
	struct dirent *entry;
	size_t count = 0;
	DIR *proc;

	if (!owners)
		return false;
	for (size_t i = 0; i < parts->sockets.count; i++)
		if (parts->all || parts->sockets.list[i].uid == parts->user)
			owners[count++].inode = parts->sockets.list[i].inode;
	qsort(owners, count, sizeof(*owners), compare);
	free(parts->owners);
	parts->owners = owners;
	parts->owner_count = 0;
	for (size_t i = 0; i < count; i++)
		if (!parts->owner_count || owners[parts->owner_count - 1].inode != owners[i].inode)
			owners[parts->owner_count++] = owners[i];
	proc = count ? opendir("/proc") : NULL;
	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)*entry->d_name))
			process_look(parts, entry->d_name);
	if (proc)
		closedir(proc);
	return true;
}
