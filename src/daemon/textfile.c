/* SPDX-License-Identifier: BSD-3-Clause */
/* textfile.c - reads whole files: the configuration, keys, cookies */
#include "config.h"

#include "daemon/textfile.h"

#include "common/problems.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A secret's group may not write it, and others may do nothing with it; a daemon's group may read it. */
#define FORBIDDEN_MODE (S_IWGRP | S_IXGRP | S_IRWXO)

/* Tells whether it is a regular file, not too large and, if it is a secret, protected; if not, adds the error to @problems. */
static bool check_kind(const struct stat *st, const char *path, const uid_t *owner,
		       const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];

	problems_quote(path, quote);
	if (!S_ISREG(st->st_mode))
		problems_add(problems, place, "%s is not a regular file", quote);
	else if (st->st_size > TEXTFILE_MAX)
		problems_add(problems, place, "%s has %lld bytes; %d are the most", quote,
			     (long long)st->st_size, TEXTFILE_MAX);
	else if (owner && st->st_uid != 0 && st->st_uid != *owner)
		problems_add(problems, place,
			     "%s belongs to user %u, who could change it; chown it to root", quote,
			     (unsigned)st->st_uid);
	else if (owner && st->st_mode & FORBIDDEN_MODE)
		problems_add(problems, place,
			     "%s has mode %04o, and it is a secret: chmod 600 it, or 640", quote,
			     (unsigned)st->st_mode & 07777);
	else
		return true;
	return false;
}

/* Reads until @len bytes or the end of the file. Returns the bytes read, or -1 with errno set. */
static ssize_t read_all(int fd, char *out, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, out + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static char start[PATH_MAX]; /* where relative names begin; "": the working directory of the process */

void textfile_start_from(const char *directory)
{
	snprintf(start, sizeof(start), "%s", directory);
}

bool textfile_path(const char *name, char path[static PATH_MAX])
{
	bool relative = name[0] != '/' && start[0];
	int len = snprintf(path, PATH_MAX, "%s%s%s", relative ? start : "", relative ? "/" : "", name);

	return len >= 0 && len < PATH_MAX;
}

char *textfile_read(const char *path, const uid_t *owner, size_t *len, const struct place *place,
		    struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], *text = NULL;
	ssize_t n = -1;
	char absolute[PATH_MAX];
	struct stat st;
	int fd;

	/* O_NONBLOCK: without it, the open of a FIFO would wait for a writer. Anything but a regular file is refused below. */
	errno = ENAMETOOLONG;
	fd = textfile_path(path, absolute) ?
		     open(absolute, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) :
		     -1;
	if (fd < 0 || fstat(fd, &st) < 0) {
		problems_add(problems, place, "%s can't be read: %s", problems_quote(path, quote),
			     strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (check_kind(&st, path, owner, place, problems)) {
		text = malloc((size_t)st.st_size + 1);
		if (text)
			n = read_all(fd, text, (size_t)st.st_size);
		if (n < 0)
			problems_add(problems, place, "%s can't be read: %s",
				     problems_quote(path, quote), strerror(errno));
	}
	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*len = (size_t)n;
	return text;
}
