/* SPDX-License-Identifier: BSD-3-Clause */
/* user.h - the user that convertd becomes when root has started it */
#ifndef CONVERTD_USER_H
#define CONVERTD_USER_H

#include "common/problems.h"

#include <stdbool.h>
#include <sys/types.h>

/* Room for a name of a user or group (LOGIN_NAME_MAX has 256). */
#define USER_NAME_MAX 64

struct user {
	char name[USER_NAME_MAX];  /* "": no user was given */
	char group[USER_NAME_MAX]; /* "": the user's own group */
	struct place place;
	uid_t uid; /* set by user_find() */
	gid_t gid;
};

/* Splits "NAME" or "NAME:GROUP". Returns false after adding the error to @problems. */
bool user_parse(struct user *user, const char *value, const struct place *place,
		struct problems *problems);

/*
 * user_find() - look up the numbers of the user and the group
 * It asks the C library's user database, which a process in the sandbox can't.
 * Returns false after adding the error to @problems.
 */
bool user_find(struct user *user, struct problems *problems);

#endif
