/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * managers.c - finds other programs that manage paths on this machine: NetworkManager, mptcpd
 *
 * Each keeps a netlink socket in this network namespace while it runs. So we look for a process of that name with such a socket
 * (/proc/net/netlink), which needs no privilege and no D-Bus.
 */
#include "config.h"

#include "host/host_model.h"

#include "common/clock.h"
#include "common/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#define PATH_MANAGER_USERSPACE 1 /* of the sysctl net.mptcp.pm_type */
#define NMCLI_TIMEOUT_MS 3000
#define NMCLI_ALL_MS 8000    /* for all questions together: well below the service's WatchdogSec=30 */
#define NMCLI_NOT_RUNNING 8  /* nmcli's exit status if NetworkManager isn't on D-Bus */

/*
 * The lower bits of a netlink port are the process ID. Further sockets of a process differ, with libnl, in the bits above these. The
 * numbers that the kernel gives them are negative.
 */
#define PORT_PID_MASK 0x3fffffu

/* --- processes -------------------------------------------------------------------------- */

static bool is_called(unsigned int pid, const char *name)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file_read_text(path, comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = '\0';
	return strcmp(comm, name) == 0;
}

/* Does a process with this name (15 bytes of it) have a netlink socket in this network namespace? */
static bool runs(const char *name)
{
	FILE *file = fopen("/proc/net/netlink", "re");
	char line[256];
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		unsigned int port;

		/* the columns: the socket's address in the kernel, the protocol, the port */
		if (sscanf(line, "%*s %*s %u", &port) == 1 && port & PORT_PID_MASK)
			found = is_called(port & PORT_PID_MASK, name);
	}
	fclose(file);
	return found;
}

/* --- NetworkManager --------------------------------------------------------------------- */

static enum host_metered read_metered(const char *text)
{
	bool guessed = strstr(text, "guess");

	if (strncasecmp(text, "yes", 3) == 0)
		return guessed ? HOST_METERED_GUESSED_YES : HOST_METERED_YES;
	if (strncasecmp(text, "no", 2) == 0)
		return guessed ? HOST_METERED_GUESSED_NO : HOST_METERED_NO;
	return HOST_METERED_UNKNOWN;
}

/* Returns the text after "NAME:" in a line, or NULL. */
static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	return strncmp(line, name, len) == 0 && line[len] == ':' ? line + len + 1 : NULL;
}

void host_nm_parse_devices(struct host_managers *out, char *text, const char *uuids[static HOST_NM_DEVICES_MAX])
{
	struct host_nm_device device = { 0 };
	const char *uuid = NULL, *value;
	char *rest = text, *line;

	out->nm_count = 0;
	while ((line = strsep(&rest, "\n"))) {
		if ((value = value_of(line, "GENERAL.DEVICE"))) {
			device = (struct host_nm_device){ 0 };
			uuid = NULL;
			strncpy(device.name, value, sizeof(device.name) - 1);
		} else if ((value = value_of(line, "GENERAL.CON-UUID"))) {
			uuid = *value && strcmp(value, "--") != 0 ? value : NULL;
		} else if ((value = value_of(line, "GENERAL.METERED"))) {
			device.metered = read_metered(value);
			if (uuid && device.name[0] && out->nm_count < HOST_NM_DEVICES_MAX) {
				uuids[out->nm_count] = uuid;
				out->nm[out->nm_count++] = device;
			}
			uuid = NULL;
		}
	}
}

void host_nm_parse_flags(struct host_nm_device *device, const char *text)
{
	/* "0x2 (disabled)", "disabled"; "0x0 (default)", "enabled,subflow" …; empty if NetworkManager has no such property */
	device->disabled = strstr(text, "disabled");
	device->endpoints = !device->disabled && text[strspn(text, " \n")] != '\0';
}

/* Runs nmcli, at most until @end. Returns 0, or -errno with nothing to free: -ECONNREFUSED if NetworkManager isn't on D-Bus. */
static int run_nmcli(const char *const words[], int64_t end, struct child_output *said)
{
	const int64_t left = (end - clock_ns()) / CLOCK_NS_PER_MS;
	int ret = left <= 0 ? -ETIMEDOUT : child_run(words, left < NMCLI_TIMEOUT_MS ? (int)left : NMCLI_TIMEOUT_MS, said);

	if (ret < 0 || !WIFEXITED(said->status) || WEXITSTATUS(said->status) != NMCLI_NOT_RUNNING)
		return ret;
	free(said->text);
	free(said->messages);
	return -ECONNREFUSED;
}

static int ask_flags(struct host_nm_device *device, const char *uuid, int64_t end)
{
	const char *const words[] = { "nmcli", "-g", "connection.mptcp-flags", "connection", "show", "uuid", uuid, NULL };
	struct child_output said;
	int ret = run_nmcli(words, end, &said);

	if (ret < 0)
		return ret;
	/* nmcli before 1.40 fails, as it doesn't know the property; NetworkManager then keeps no endpoints */
	if (!said.status)
		host_nm_parse_flags(device, said.text);
	free(said.text);
	free(said.messages);
	return 0;
}

static int ask_network_manager(struct host_managers *out)
{
	static const char *const words[] = { "nmcli", "-t", "-e", "no", "-f", "GENERAL.DEVICE,GENERAL.CON-UUID,GENERAL.METERED",
					     "device", "show", NULL };
	const int64_t end = clock_ns() + NMCLI_ALL_MS * CLOCK_NS_PER_MS;
	struct host_managers found = { 0 };
	const char *uuids[HOST_NM_DEVICES_MAX];
	struct child_output said;
	int ret = run_nmcli(words, end, &said);

	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	if (said.status)
		ret = -EIO;
	else
		host_nm_parse_devices(&found, said.text, uuids);
	for (size_t i = 0; i < found.nm_count && ret == 0; i++)
		ret = ask_flags(&found.nm[i], uuids[i], end);
	free(said.text);
	free(said.messages);
	if (ret == 0) {
		memcpy(out->nm, found.nm, sizeof(out->nm));
		out->nm_count = found.nm_count;
	}
	return ret;
}

int host_managers_read(struct host_managers *out)
{
	out->userspace = sysctl_read("net.mptcp.pm_type") == PATH_MANAGER_USERSPACE;
	out->mptcpd = runs("mptcpd");
	if (runs("NetworkManager"))
		return ask_network_manager(out);
	out->nm_count = 0;
	return 0;
}
