/* SPDX-License-Identifier: BSD-3-Clause */
/* own_files.c - the files that convertize makes for units and sessions */
#include "config.h"

#include "convertize/enable/enable.h"

#include "common/os.h"
#include "convertize/options/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_UNITS "/etc/systemd/system" /* systemd.unit(5); convertize's prefix doesn't matter */
#define USER_UNITS "systemd/user"          /* below the user's directory of configurations */
#define FILE_MAX (64 * 1024)

static enum own_result failed(const char *path)
{
	bool rights = (errno == EACCES || errno == EPERM) && geteuid() != 0 &&
		      strncmp(path, SYSTEM_UNITS, strlen(SYSTEM_UNITS)) == 0;

	fprintf(stderr, "convertize: %s: %s%s\n", path, strerror(errno),
		rights ? "; run convertize as root, or say --user for your own units" : "");
	return OWN_FAILED;
}

bool own_units(char path[static PATH_MAX], bool user)
{
	if (!user)
		strcpy(path, SYSTEM_UNITS);
	if (!user || conf_user_path(path, USER_UNITS))
		return true;
	fputs("convertize: --user: HOME is not set to a directory; set it\n", stderr);
	return false;
}

bool own_path(char path[static PATH_MAX], const char *units, const char *unit, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s.d/%s", units, unit, name) < PATH_MAX;
}

/* Reads at most FILE_MAX bytes of a file. Returns a text, which the caller frees, or NULL with errno. */
static char *read_file(const char *path)
{
	char *text = malloc(FILE_MAX + 1);
	ssize_t len = text ? file_read_text(path, text, FILE_MAX + 1) : -ENOMEM;

	if (len >= 0)
		return text;
	free(text);
	errno = (int)-len;
	return NULL;
}

char *own_read(const char *path)
{
	char *text = read_file(path);

	if (text && unit_text_is_ours(text))
		return text;
	free(text);
	return NULL;
}

/* Makes the directories of a file, as mkdir -p does. */
static bool make_directories(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return false;
	}
	return true;
}

/* Is there a file that is somebody else's, or unreadable? If so, prints that. *@before: the file's text, which the caller frees; or NULL */
static bool is_foreign(const char *path, char **before)
{
	*before = read_file(path);
	if (!*before && errno == ENOENT)
		return false;
	if (*before && unit_text_is_ours(*before))
		return false;
	if (*before)
		fprintf(stderr, "convertize: %s: is not convertize's, as its first line isn't \"%s\"; remove it, or move it away\n",
			path, UNIT_MARKER ": ...");
	else
		failed(path);
	return true;
}

enum own_result own_write(const char *path, const char *text, mode_t mode)
{
	char other[PATH_MAX], *before;
	struct stat st;
	bool same;

	if (is_foreign(path, &before)) {
		free(before);
		return OWN_FAILED;
	}
	same = before && strcmp(before, text) == 0 && stat(path, &st) == 0 && (st.st_mode & 07777) == mode;
	free(before);
	if (same)
		return OWN_NOTHING;
	/* systemd reads only names that end in ".conf" */
	if (snprintf(other, sizeof(other), "%s.%u~", path, (unsigned int)getpid()) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return failed(path);
	}
	if (!make_directories(path))
		return failed(path);
	errno = -file_replace(path, other, text, strlen(text), mode, true);
	if (errno)
		return failed(path);
	return OWN_DONE;
}

enum own_result own_remove(const char *path, bool directory)
{
	char *before, parent[PATH_MAX];

	if (is_foreign(path, &before)) {
		free(before);
		return OWN_FAILED;
	}
	if (!before)
		return OWN_NOTHING;
	free(before);
	if (unlink(path) < 0)
		return failed(path);
	if (directory) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
		rmdir(parent); /* fails if it contains something else */
	}
	return OWN_DONE;
}
