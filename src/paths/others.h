/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * others.h - who else looks after paths on this machine: NetworkManager, mptcpd
 *
 * Two that keep the same endpoints take them from each other. NetworkManager keeps those of the devices that it manages, since
 * 1.40 and as connection.mptcp-flags says; mptcpd those of all. Neither makes rules and tables for connections that
 * are bound to an address, so that these remain to be done.
 */
#ifndef PATHS_OTHERS_H
#define PATHS_OTHERS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define PATHS_OTHERS_DEVICES_MAX 64

enum paths_metered {
	PATHS_METERED_UNKNOWN,
	PATHS_METERED_NO,
	PATHS_METERED_YES,
	PATHS_METERED_GUESSED_NO, /* by NetworkManager, from what the network has said or from its kind */
	PATHS_METERED_GUESSED_YES,
};

/* What NetworkManager does about a device that it manages. */
struct paths_nm_device {
	char name[IF_NAMESIZE];
	bool endpoints; /* it keeps them */
	bool disabled;  /* its user has said that this is no path: connection.mptcp-flags disabled */
	enum paths_metered metered;
};

struct paths_others {
	bool userspace; /* net.mptcp.pm_type is 1: the kernel's endpoints mean nothing to new connections */
	bool mptcpd;    /* it runs here */
	struct paths_nm_device nm[PATHS_OTHERS_DEVICES_MAX];
	size_t nm_count;
};

/* Looks for them. Where NetworkManager runs, nmcli(1) is asked, which takes some hundredths of a second. */
void paths_others_look(struct paths_others *out);

/* What NetworkManager does about the device; NULL: it doesn't manage it. */
const struct paths_nm_device *paths_others_nm(const struct paths_others *others, const char *name);

/*
 * paths_others_parse_devices() - the devices that NetworkManager has connected, from what nmcli says of all
 * @text: of "nmcli -t -f GENERAL.DEVICE,GENERAL.CON-UUID,GENERAL.METERED device show"; it is overwritten
 * @uuids: set to the connection of each device, in @text. For a device of *@out only its name and metered are set.
 */
void paths_others_parse_devices(struct paths_others *out, char *text, const char *uuids[static PATHS_OTHERS_DEVICES_MAX]);

/* Takes over what "nmcli -g connection.mptcp-flags connection show UUID" says; the empty text of an older one means no endpoints. */
void paths_others_parse_flags(struct paths_nm_device *device, const char *text);

#endif
