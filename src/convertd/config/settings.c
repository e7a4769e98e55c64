/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - the operator's values of the options, which never change once they are read */
#include "config.h"

#include "convertd/config/settings.h"

#include "convertd/policy/cookies.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

void settings_destroy(struct settings *settings)
{
	if (!settings)
		return;
	access_fini(&settings->access);
	cookies_destroy(settings->cookies);
	free(settings);
}

/* ----- the user that convertd becomes when root has started it ----- */

static bool take_name(char name[static USER_NAME_MAX], const char *text, size_t len)
{
	if (len == 0 || len >= USER_NAME_MAX)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	return true;
}

bool user_parse(struct user *user, const char *value, const struct place *place,
		struct problems *problems)
{
	size_t len = strcspn(value, ":");
	char quote[PROBLEM_QUOTE_MAX];

	memset(user, 0, sizeof(*user));
	user->place = *place;
	if (take_name(user->name, value, len) &&
	    (!value[len] || take_name(user->group, value + len + 1, strlen(value + len + 1))))
		return true;
	problems_add(problems, place, "%s is not NAME or NAME:GROUP, of at most %d bytes each",
		     problems_quote(value, quote), USER_NAME_MAX - 1);
	return false;
}

bool user_find(struct user *user, struct problems *problems)
{
	const struct passwd *account = getpwnam(user->name);
	char quote[PROBLEM_QUOTE_MAX];
	const struct group *group;

	if (!account) {
		problems_add(problems, &user->place,
			     "%s is no user of this host; make it with: useradd --system "
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
			     "%s is no group of this host; make it with: groupadd --system NAME",
			     problems_quote(user->group, quote));
		return false;
	}
	user->gid = group->gr_gid;
	return true;
}
