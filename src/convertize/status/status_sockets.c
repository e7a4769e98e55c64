/* SPDX-License-Identifier: BSD-3-Clause */
/* status_sockets.c - the sockets of this network namespace, the processes that hold them, and the notes in users' caches */
#include "config.h"

#include "convertize/status/status.h"

#include "common/clock.h"
#include "common/netlink.h"
#include "common/os.h"
#include "common/tcp.h"
#include "convertize/check/check.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATES                                                                                             \
	(1u << TCPINFO_ESTABLISHED | 1u << TCPINFO_FIN_WAIT1 | 1u << TCPINFO_FIN_WAIT2 | 1u << TCPINFO_CLOSE_WAIT | \
	 1u << TCPINFO_LAST_ACK | 1u << TCPINFO_CLOSING)
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
	if (!reading->mptcp)
		netlink_read_socket_info(message, &info, sizeof(info));
	socket = &out->list[out->count++];
	*socket = (struct status_socket){
		.cookie = (uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0],
		.inode = found->idiag_inode,
		.uid = found->idiag_uid,
		.mptcp = reading->mptcp,
		.local = netlink_socket_address(found, false),
		.peer = netlink_socket_address(found, true),
		.established = found->idiag_state == TCPINFO_ESTABLISHED,
		.received = info.tcpi_bytes_received,
		.sent = info.tcpi_bytes_acked ? info.tcpi_bytes_acked - 1 : 0, /* without the SYN, which it counts */
		.heard_ms = info.tcpi_last_ack_recv,
	};
	return MNL_CB_OK;
}

int status_sockets_read(struct status_sockets *out)
{
	static struct netlink netlink;
	int ret = netlink_open(&netlink, NETLINK_SOCK_DIAG);

	if (ret < 0)
		return ret;
	for (int i = 0; i == 0 || (ret == -EINTR && i < READS_MAX); i++) {
		out->count = 0;
		/* fails where the kernel has no Multipath TCP: then there is only TCP */
		netlink_dump_sockets(&netlink, IPPROTO_MPTCP, STATES, on_socket, &(struct reading){ out, true });
		ret = netlink_dump_sockets(&netlink, IPPROTO_TCP, STATES, on_socket, &(struct reading){ out, false });
	}
	out->read = clock_ns();
	if (out->count) /* without sockets there is no list */
		qsort(out->list, out->count, sizeof(*out->list), status_compare_sockets);
	netlink_close(&netlink);
	return ret == -EINTR ? 0 : ret;
}

/* --- caches that aren't in the usual places --- */

#define ELSEWHERE_MAX 32
#define ENVIRONMENT_MAX (256 * 1024)

/* Directories that programs name in their environment, or where daemons have their cache open. */
static char elsewhere[ELSEWHERE_MAX][PATH_MAX];
static size_t elsewhere_count;

/* Adds a directory, unless it is there. */
static void add_elsewhere(const char *directory)
{
	if (*directory != '/' || elsewhere_count == ELSEWHERE_MAX || strlen(directory) >= PATH_MAX)
		return;
	for (size_t i = 0; i < elsewhere_count; i++)
		if (strcmp(elsewhere[i], directory) == 0)
			return;
	strcpy(elsewhere[elsewhere_count++], directory);
}

/* Adds the directory that the process has in its environment, if any. */
static void add_of_process(const char *number)
{
	static const char name[] = "CONVERT_CACHE=";
	static char environment[ENVIRONMENT_MAX];
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%.20s/environ", number);
	len = file_read_text(path, environment, sizeof(environment));
	for (const char *one = environment; one < environment + len; one += strlen(one) + 1)
		if (strncmp(one, name, strlen(name)) == 0)
			add_elsewhere(one + strlen(name));
}

/* --- processes --- */

/* Reads the name that a program has given itself, or its file's. */
static void program_read(const char *number, char name[static STATUS_PROGRAM_MAX])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/comm", number);
	file_read_text(path, name, STATUS_PROGRAM_MAX);
	name[strcspn(name, "\n")] = '\0';
}

/* Is the link to a daemon's cache? Then cuts the file's name from it. */
static bool cut_cache(char *link)
{
	char *end = strstr(link, "/" CACHE_FILE);

	if (!end || end[sizeof("/" CACHE_FILE) - 1])
		return false;
	*end = '\0';
	return true;
}

/* Finds the sockets among a process's descriptors. A supervisor holds its programs' sockets only for a moment, and doesn't count. */
static void process_look(struct status_parts *parts, const char *number)
{
	char path[64], link[PATH_MAX];
	struct status_owner key = { 0 }, *owner;
	struct dirent *entry;
	bool holds = false;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", number);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		ssize_t len = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		if (cut_cache(link))
			add_elsewhere(link);
		if (sscanf(link, "socket:[%" SCNu32 "]", &key.inode) != 1)
			continue;
		owner = bsearch(&key, parts->owners, parts->owner_count, sizeof(key), status_compare_inodes);
		if (!owner || (owner->pid && strcmp(owner->program, "convertize") != 0))
			continue;
		owner->pid = (pid_t)strtol(number, NULL, 10);
		program_read(number, owner->program);
		holds = true;
	}
	if (directory)
		closedir(directory);
	if (holds)
		add_of_process(number);
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
	qsort(owners, count, sizeof(*owners), status_compare_inodes);
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

/* --- notes --- */

/* Root may read the caches of all users, a user only their own. */

#define NOTES_MAX 2048 /* of one file */

static void read_file(struct status_notes *out, const char *path)
{
	static struct note notes[NOTES_MAX];
	uid_t owner;
	int count = notes_read(path, cache_network(-1), notes, NOTES_MAX, &owner);
	struct status_note *more;

	if (count <= 0)
		return;
	if (out->count + (size_t)count > out->room) {
		more = realloc(out->list, (out->count + (size_t)count) * sizeof(*more));
		if (!more)
			return;
		out->list = more;
		out->room = out->count + (size_t)count;
	}
	for (int i = 0; i < count; i++)
		out->list[out->count++] = (struct status_note){ notes[i], owner };
}

static void read_in(struct status_notes *out, const char *directory)
{
	char path[PATH_MAX + sizeof("/" CACHE_FILE)];

	snprintf(path, sizeof(path), "%s/" CACHE_FILE, directory);
	read_file(out, path);
}

void status_notes_read(struct status_parts *parts, const struct settings *settings)
{
	/* the places of cache_find(), and convertgw's */
	static const char *const usual[] = { "/run/user/*/" CACHE_FILE, "/run/libconvert/" CACHE_FILE, "/run/convertgw/" CACHE_FILE,
					     "/dev/shm/libconvert-*/" CACHE_FILE, "/tmp/libconvert-*/" CACHE_FILE };
	struct status_notes *out = &parts->notes;
	glob_t found = { 0 };

	out->count = 0;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		glob(usual[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_file(out, found.gl_pathv[i]);
	globfree(&found);
	add_elsewhere(settings->cache);
	if (strncmp(settings->runtime_dir, "/run/user/", strlen("/run/user/")) != 0)
		add_elsewhere(settings->runtime_dir);
	for (size_t i = 0; i < elsewhere_count; i++)
		read_in(out, elsewhere[i]);
}
