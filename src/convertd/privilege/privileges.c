/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * privileges.c - becomes the user of --user and gives up all capabilities that convertd doesn't need
 *
 * It keeps CAP_NET_BIND_SERVICE, since a reload may name a port below 1024, and CAP_NET_ADMIN for
 * the nftables rules, the netfilter queue and --preserve-client-address, unless the settings need none of
 * these. All others are dropped, from the bounding set as well. A convertd that isn't started by root
 * keeps the capabilities that the service manager has given it.
 */
#include "config.h"

#include "convertd/privilege/privilege.h"

#include "daemon/log.h"
#include "daemon/textfile.h"
#include "convertd/config/convertd_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_LIBCAP_NG
#include <cap-ng.h>

static bool change_user(const struct settings *settings, struct problems *problems)
{
	const unsigned kept[] = { CAP_NET_BIND_SERVICE, CAP_NET_ADMIN };
	bool admin = settings->hold_syn != SETTINGS_HOLD_OFF || settings->sources.preserve;
	size_t count = admin ? 2 : 1;
	bool has[2], bounding;
	int error;

	/* In a container even root may lack some capabilities. */
	if (capng_get_caps_process() < 0) {
		problems_add(problems, &settings->user.place, "\"%s\": what rights this process has can't be read: %s",
			     settings->user.name, strerror(errno));
		return false;
	}
	bounding = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
	for (size_t i = 0; i < count; i++)
		has[i] = capng_have_capability(CAPNG_PERMITTED, kept[i]);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < count; i++)
		if (has[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, kept[i]);
	error = capng_change_id((int)settings->user.uid, (int)settings->user.gid,
				CAPNG_INIT_SUPP_GRP | (bounding ? CAPNG_CLEAR_BOUNDING : 0));
	if (!error)
		return true;
	problems_add(problems, &settings->user.place,
		     "\"%s\": rights can't be given up (libcap-ng says %d); it takes CAP_SETUID and "
		     "CAP_SETGID",
		     settings->user.name, error);
	return false;
}

#else

static bool change_user(const struct settings *settings, struct problems *problems)
{
	problems_add(problems, &settings->user.place,
		     "\"%s\": convertd was built without libcap-ng; leave it out and let the service "
		     "manager set the user (User=, AmbientCapabilities=)",
		     settings->user.name);
	return false;
}

#endif

/* If root didn't start convertd: adds an error to @problems and returns false if --user names another user. */
static bool check_user(const struct settings *settings, struct problems *problems)
{
	struct user user = settings->user;

	if (!user_find(&user, problems))
		return false;
	if (user.uid == geteuid())
		return true;
	problems_add(problems, &user.place, "\"%s\": only root can become another user; leave it out",
		     user.name);
	return false;
}

/* Warns of a file that root could read and the user can't. */
static void check_readable(const struct settings_path *path, const char *user)
{
	char absolute[PATH_MAX];

	if (path->name[0] && textfile_path(path->name, absolute) &&
	    faccessat(AT_FDCWD, absolute, R_OK, AT_EACCESS) < 0)
		log_warning("\"%.200s\" (%s) can't be read by user %s (%s): no reload will work; give "
			    "the file to a group of that user's and chmod 640 it, and chmod +x the "
			    "directories above",
			    path->name, path->place.name, user, strerror(errno));
}

static void check_files(const struct settings *settings)
{
	check_readable(&settings->config, settings->user.name);
	check_readable(&settings->cookie_key, settings->user.name);
	check_readable(&settings->cookie_list, settings->user.name);
}

bool privileges_drop(const struct settings *settings, struct problems *problems)
{
	if (geteuid() != 0) {
		if (settings->user.name[0] && !check_user(settings, problems))
			return false;
	} else if (!settings->user.name[0]) {
		log_warning("convertd runs as root, and so would whoever finds a fault in it; pass --user "
			    "NAME (make one with: useradd --system --no-create-home --shell "
			    "/usr/sbin/nologin convertd), or have the service manager set the user");
	} else if (!change_user(settings, problems)) {
		return false;
	} else {
		check_files(settings);
	}
#ifdef WITH_SANITIZERS
	/* Without this the leak sanitizer can't attach to a process that has changed its user. */
	prctl(PR_SET_DUMPABLE, 1);
#endif
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_warning("no_new_privs can't be set: %s", strerror(errno));
	return true;
}

/*
 * the capabilities of this process: capabilities(7)
 *
 * It makes the system calls itself, so that a process can drop all capabilities even if convertd was built without
 * libcap-ng.
 */

#define WORDS _LINUX_CAPABILITY_U32S_3

static int get(struct __user_cap_data_struct data[static WORDS])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

bool capabilities_has(uint64_t set)
{
	struct __user_cap_data_struct data[WORDS] = { 0 };

	return get(data) == 0 &&
	       (((uint64_t)data[1].effective << 32 | data[0].effective) & set) != 0;
}

int capabilities_keep(uint64_t set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS] = { 0 };
	int error = get(data);

	if (error)
		return error;
	/* Goes on until it fails behind the last capability: a kernel newer than the headers may have more of them. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < WORDS; i++) {
		data[i].permitted &= (uint32_t)(set >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
