/* SPDX-License-Identifier: BSD-3-Clause */
/* tempdir.h - a directory for one test: accessible to this user only, and with no filled directories in it */
#ifndef TESTS_UNIT_TEMPDIR_H
#define TESTS_UNIT_TEMPDIR_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes a directory below TMPDIR or /tmp; aborts the test if that is impossible. */
static inline void tempdir_make(char path[static PATH_MAX])
{
	const char *base = getenv("TMPDIR");

	snprintf(path, PATH_MAX, "%s/libconvert-test.XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(path)) {
		perror(path);
		abort();
	}
}

static inline void tempdir_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    unlinkat(dirfd(dir), entry->d_name, 0) < 0)
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
	rmdir(path);
}

#endif
