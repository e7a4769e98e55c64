/* SPDX-License-Identifier: BSD-3-Clause */
/* session_decide.c - are a user's sessions converted? */
#include "config.h"

#include "convertize/enable/session.h"

#include <string.h>

/* Is a name in a list of names with a blank behind each? */
static bool is_in(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (; list && *list; list += strcspn(list, " ") + 1)
		if (strncmp(list, name, len) == 0 && list[len] == ' ')
			return true;
	return false;
}

static bool is_meant(const struct conf *conf, const struct session_user *user)
{
	if (!conf->users && !conf->groups)
		return user->uid != 0;
	if (user->name && is_in(conf->users, user->name))
		return true;
	for (const char *const *group = user->groups; *group; group++)
		if (is_in(conf->groups, *group))
			return true;
	return false;
}

bool session_decide(const struct conf_files *files, const struct session_user *user, const char **file)
{
	*file = NULL;
	for (size_t i = 0; i < files->count; i++) {
		const struct conf *conf = &files->files[i];

		if (conf->session == CONF_SESSION_UNSET)
			continue;
		*file = conf->path;
		return conf->session == CONF_SESSION_YES && (!conf->is_system || is_meant(conf, user));
	}
	return false;
}
