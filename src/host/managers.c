/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * managers.c - finds other programs that manage paths on this machine: NetworkManager, mptcpd
 *
 * Each keeps a netlink socket in this network namespace while it runs. So we look for a process of that name with such a socket
 * (/proc/net/netlink), which needs no privilege and no D-Bus.
 */
#include "config.h"

#include "host/host_model.h"

#include "common/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PATH_MANAGER_USERSPACE 1 /* of the sysctl net.mptcp.pm_type */
#define NMCLI_TIMEOUT_MS 3000

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

static void ask_flags(struct host_nm_device *device, const char *uuid)
{
	const char *const words[] = { "nmcli", "-g", "connection.mptcp-flags", "connection", "show", "uuid", uuid, NULL };
	struct child_output said;

	/* NetworkManager before 1.40 doesn't know the property, and keeps no endpoints */
	if (child_run(words, NMCLI_TIMEOUT_MS, &said) < 0)
		return;
	if (!said.status)
		host_nm_parse_flags(device, said.text);
	free(said.text);
	free(said.messages);
}

static void ask_network_manager(struct host_managers *out)
{
	static const char *const words[] = { "nmcli", "-t", "-e", "no", "-f", "GENERAL.DEVICE,GENERAL.CON-UUID,GENERAL.METERED",
					     "device", "show", NULL };
	const char *uuids[HOST_NM_DEVICES_MAX];
	struct child_output said;

	if (child_run(words, NMCLI_TIMEOUT_MS, &said) < 0)
		return;
	if (!said.status)
		host_nm_parse_devices(out, said.text, uuids);
	for (size_t i = 0; i < out->nm_count; i++)
		ask_flags(&out->nm[i], uuids[i]);
	free(said.text);
	free(said.messages);
}

void host_managers_read(struct host_managers *out)
{
	memset(out, 0, sizeof(*out));
	out->userspace = sysctl_read("net.mptcp.pm_type") == PATH_MANAGER_USERSPACE;
	out->mptcpd = runs("mptcpd");
	if (runs("NetworkManager"))
		ask_network_manager(out);
}
