/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * privileges.c - becomes the user of --user and gives up all capabilities that convertd doesn't need
 *
 * It keeps CAP_NET_BIND_SERVICE, since a reload may name a port below 1024, and CAP_NET_ADMIN if the settings need the nftables rules, the
 * netfilter queue or --preserve-client-address. All others are dropped, from the bounding set as well. A convertd that isn't started by
 * root keeps the capabilities that the service manager has given it.
 */
#include "config.h"

#include "convertd/privilege/privilege.h"

#include "common/os.h"
#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Becomes the user of --user. Returns false after adding the error to @problems. */
static bool change_user(const struct convertd_settings *settings, struct problems *problems)
{
	const struct user *user = &settings->user;
	const bool admin = settings->hold_syn != SETTINGS_HOLD_OFF || settings->sources.preserve;
	const uint64_t kept = CAPABILITIES_BIT(CAP_NET_BIND_SERVICE) | (admin ? CAPABILITIES_BIT(CAP_NET_ADMIN) : 0);
	/* The bounding set can be emptied only before the change. */
	int error = capabilities_keep(kept | CAPABILITIES_BIT(CAP_SETUID) | CAPABILITIES_BIT(CAP_SETGID));

	if (!error && (prctl(PR_SET_KEEPCAPS, 1) < 0 || initgroups(user->name, user->gid) < 0 || setgid(user->gid) < 0 ||
		       setuid(user->uid) < 0))
		error = -errno;
	if (!error)
		error = capabilities_keep(kept);
	if (error)
		problems_add(problems, &user->place, "\"%s\": rights can't be given up: %s; it takes CAP_SETUID and CAP_SETGID", user->name,
			     strerror(-error));
	return !error;
}

/* If root didn't start convertd: adds an error to @problems and returns false if --user names another user. */
static bool check_user(const struct convertd_settings *settings, struct problems *problems)
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
	if (path->name[0] && faccessat(AT_FDCWD, path->name, R_OK, AT_EACCESS) < 0)
		log_warning("\"%.200s\" (%s) can't be read by user %s (%s): no reload will work; give "
			    "the file to a group of that user's and chmod 640 it, and chmod +x the "
			    "directories above",
			    path->name, path->place.name, user, strerror(errno));
}

static void check_files(const struct convertd_settings *settings)
{
	check_readable(&settings->config, settings->user.name);
	check_readable(&settings->cookie_key, settings->user.name);
	check_readable(&settings->cookie_list, settings->user.name);
}

bool privileges_drop(const struct convertd_settings *settings, struct problems *problems)
{
	if (geteuid() != 0) {
		if (settings->user.name[0] && !check_user(settings, problems))
			return false;
	} else if (!settings->user.name[0]) {
		log_warning("convertd runs as root, and so would an attacker who finds a fault in it; pass --user "
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
