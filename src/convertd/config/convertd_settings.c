/* SPDX-License-Identifier: BSD-3-Clause */
/* convertd_settings.c - reads the operator's settings from the command line and the files that it names */
#include "config.h"

#include "convertd/config/convertd_settings.h"

#include "common/os.h"
#include "daemon/log.h"
#include "convertd/policy/cookies.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_GROUP "convertd" /* contrib/sysusers.d makes it */

/* Hands the text of a file with secrets to @add, and wipes it. */
static void read_secrets(struct convertd_settings *settings, const struct settings_path *path,
			 void (*add)(struct cookies *cookies, const char *file, char *text,
				     size_t len, const struct place *place,
				     struct problems *problems),
			 struct problems *problems)
{
	/* Root reads the file on behalf of --user. */
	uid_t owner = settings->user.uid ? settings->user.uid : geteuid();
	size_t len;
	char *text;

	if (!path->name[0])
		return;
	text = textfile_read(path->name, &owner, &len, &path->place, problems);
	if (!text)
		return;
	if (!settings->cookies)
		settings->cookies = cookies_create();
	if (settings->cookies)
		add(settings->cookies, path->name, text, len, &path->place, problems);
	else
		problems_add(problems, &path->place, "out of memory");
	sodium_memzero(text, len);
	free(text);
}

/*
 * Sets the key for the choice of sources, which others don't know and which outlives a restart: the host's
 * machine-id(5). Without one the key is known, which costs one protection only.
 */
static void set_source_key(struct sources *sources)
{
	char text[64];

	file_read_text("/etc/machine-id", text, sizeof(text));
	sources_set_key(sources, text);
}

/* Completes settings that depend on several options. */
static void finish(struct convertd_settings *settings, struct problems *problems)
{
	static const struct place nowhere;

	if (access_finish(&settings->access, problems) < 0)
		problems_add(problems, &nowhere, "out of memory");
	if (!settings->listen_count) {
		struct listen_address *listen = &settings->listen[settings->listen_count++];

		sockaddr_ip_parse(&listen->address, SETTINGS_LISTEN_DEFAULT, 0);
		settings->listen_is_default = true;
	}
}

/* A reload skips this: the user doesn't matter any more, and the sandbox forbids the lookup. */
static void find_user(struct convertd_settings *settings, struct problems *problems)
{
	static bool is_reload;

	if (settings->user.name[0] && !is_reload && (geteuid() == 0 || settings->action == SETTINGS_CHECK))
		user_find(&settings->user, problems);
	is_reload = true;
}

static struct convertd_settings *settings_new(void)
{
	struct convertd_settings *settings = calloc(1, sizeof(*settings));

	if (!settings)
		return NULL;
	options_set_numbers(convertd_options.table, settings);
	settings->log_level = LOG_LEVEL_INFO;
	settings->log_format = LOG_FORMAT_TEXT;
	return settings;
}

/* Tells whether --new-client or --remove-client was given: they read all settings but the secrets. */
static bool is_about_client(const struct convertd_settings *settings)
{
	return settings->action == SETTINGS_NEW_CLIENT || settings->action == SETTINGS_REMOVE_CLIENT;
}

/* Chooses the usual configuration file, if there is one that can be read, where the command line names none. */
static void choose_config(struct convertd_settings *settings)
{
	if (!settings->config.name[0] && access(SETTINGS_CONFIG_DEFAULT, R_OK) == 0)
		strcpy(settings->config.name, SETTINGS_CONFIG_DEFAULT);
}

struct convertd_settings *convertd_settings_read(int argc, char *argv[], struct problems *problems)
{
	struct convertd_settings *settings = settings_new(), *overridden = settings_new();
	struct option_reading reading = { &convertd_options, settings, overridden, problems, { 0 }, { 0 } };
	static const struct place nowhere;

	if (!settings || !overridden) {
		problems_add(problems, &nowhere, "out of memory");
	} else {
		options_read_command_line(&reading, argc, argv);
		if (is_about_client(settings))
			choose_config(settings);
		if (settings->action <= SETTINGS_STATUS && settings->config.name[0])
			options_read_file(&reading, &settings->config);
		if (settings->action <= SETTINGS_REMOVE_CLIENT) {
			finish(settings, problems);
			find_user(settings, problems);
		} else if (settings->action == SETTINGS_MAKE_KEY) {
			find_user(settings, problems);
		}
		if (settings->action <= SETTINGS_CHECK) {
			set_source_key(&settings->sources);
			read_secrets(settings, &settings->cookie_key,
				     cookies_add_keys, problems);
			read_secrets(settings, &settings->cookie_list,
				     cookies_add_fixed, problems);
		}
	}
	convertd_settings_destroy(overridden);
	if (!problems->count)
		return settings;
	convertd_settings_destroy(settings);
	return NULL;
}

void settings_check_text(const char *name, char *text, size_t len, struct problems *problems)
{
	struct convertd_settings *settings = settings_new(), *overridden = settings_new();
	struct option_reading reading = { &convertd_options, settings, overridden, problems, { 0 }, { 0 } };

	if (settings && overridden) {
		options_read_text(&reading, name, text, len);
		finish(settings, problems);
	}
	convertd_settings_destroy(overridden);
	convertd_settings_destroy(settings);
}

void convertd_settings_destroy(struct convertd_settings *settings)
{
	if (!settings)
		return;
	access_fini(&settings->access);
	cookies_destroy(settings->cookies);
	free(settings);
}

/* ----- the user that convertd becomes when root has started it ----- */

bool user_find(struct user *user, struct problems *problems)
{
	const struct passwd *account = getpwnam(user->name);
	char quote[PROBLEM_QUOTE_MAX];
	const struct group *group;

	if (!account) {
		problems_add(problems, &user->place,
			     "%s isn't a user of this host; make it with: useradd --system "
			     "--no-create-home --shell /usr/sbin/nologin NAME",
			     problems_quote(user->name, quote));
		return false;
	}
	user->uid = account->pw_uid;
	user->gid = account->pw_gid;
	if (!user->group[0])
		return true;
	group = getgrnam(user->group);
	if (!group) {
		problems_add(problems, &user->place,
			     "%s isn't a group of this host; make it with: groupadd --system NAME",
			     problems_quote(user->group, quote));
		return false;
	}
	user->gid = group->gr_gid;
	return true;
}

int user_set_rights(const struct user *user, int fd)
{
	const struct group *group = getgrnam(USUAL_GROUP);

	if (geteuid() != 0 || (!user->name[0] && !group))
		return fchmod(fd, 0600);
	if (fchown(fd, 0, user->name[0] ? user->gid : group->gr_gid) == 0)
		return fchmod(fd, 0640);
	/* root of a user namespace that lacks this group, or without CAP_CHOWN */
	return errno == EINVAL || errno == EPERM ? fchmod(fd, 0600) : -1;
}
