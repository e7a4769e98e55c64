/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_notes.c - finds the caches of users, and reads the notes in them
 *
 * Root may read all, a user only their own. Programs may have their cache elsewhere (CONVERT_CACHE); their environment tells.
 */
#include "config.h"

#include "convertize/status/status.h"

#include "convertize/check/check.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTES_MAX 2048 /* of one file */
#define ELSEWHERE_MAX 16
#define SEEN_MAX 1024
#define ENVIRONMENT_MAX (256 * 1024)

/* Directories that programs have named. */
static char elsewhere[ELSEWHERE_MAX][PATH_MAX];
static size_t elsewhere_count;

static void read_file(struct status_notes *out, const char *path)
{
	static struct note notes[NOTES_MAX];
	uid_t owner;
	int count = notes_read(path, cache_network(-1), notes, NOTES_MAX, &owner);
	struct status_note *more;

	if (count <= 0)
		return;
	if (out->count + (size_t)count > out->room) {
		more = realloc(out->list, (out->count + (size_t)count) * sizeof(*more));
		if (!more)
			return;
		out->list = more;
		out->room = out->count + (size_t)count;
	}
	for (int i = 0; i < count; i++)
		out->list[out->count++] = (struct status_note){ notes[i], owner };
}

static void read_in(struct status_notes *out, const char *directory)
{
	char path[PATH_MAX + sizeof("/" CACHE_FILE)];

	snprintf(path, sizeof(path), "%s/" CACHE_FILE, directory);
	read_file(out, path);
}

/* Adds a directory, unless it is there. */
static void add_elsewhere(const char *directory)
{
	if (*directory != '/' || elsewhere_count == ELSEWHERE_MAX || strlen(directory) >= PATH_MAX)
		return;
	for (size_t i = 0; i < elsewhere_count; i++)
		if (strcmp(elsewhere[i], directory) == 0)
			return;
	strcpy(elsewhere[elsewhere_count++], directory);
}

/* Adds the directory that the process has in its environment, if any. */
static void add_of_process(pid_t pid)
{
	static const char name[] = "CONVERT_CACHE=";
	static char environment[ENVIRONMENT_MAX];
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, environment, sizeof(environment) - 1);
	close(fd);
	environment[len > 0 ? len : 0] = '\0';
	for (const char *one = environment; one < environment + len; one += strlen(one) + 1)
		if (strncmp(one, name, strlen(name)) == 0)
			add_elsewhere(one + strlen(name));
}

/* Looks into the environment of each process that holds a socket, once. */
static void look_at_processes(const struct status_parts *parts)
{
	static pid_t seen[SEEN_MAX];
	static size_t next;

	for (size_t i = 0; i < parts->owner_count; i++) {
		const pid_t pid = parts->owners[i].pid;
		bool known = !pid;

		for (size_t j = 0; j < SEEN_MAX && !known; j++)
			known = seen[j] == pid;
		if (known)
			continue;
		seen[next++ % SEEN_MAX] = pid;
		add_of_process(pid);
	}
}

void status_notes_read(struct status_parts *parts, const struct settings *settings)
{
	/* the places of cache_find(), and convertgw's */
	static const char *const usual[] = { "/run/user/*/" CACHE_FILE, "/run/libconvert/" CACHE_FILE, "/run/convertgw/" CACHE_FILE,
					     "/dev/shm/libconvert-*/" CACHE_FILE, "/tmp/libconvert-*/" CACHE_FILE };
	struct status_notes *out = &parts->notes;
	glob_t found = { 0 };

	out->count = 0;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		glob(usual[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_file(out, found.gl_pathv[i]);
	globfree(&found);
	add_elsewhere(settings->cache);
	if (strncmp(settings->runtime_dir, "/run/user/", strlen("/run/user/")) != 0)
		add_elsewhere(settings->runtime_dir);
	look_at_processes(parts);
	for (size_t i = 0; i < elsewhere_count; i++)
		read_in(out, elsewhere[i]);
}
