/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_search.c - the files of a unit, found as systemd finds them, where it can't be asked */
#include "config.h"

#include "convertize/enable/unit_search.h"

#include "convertize/enable/unit_file.h"
#include "convertize/enable/unit_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIASES_MAX 8
#define DROPINS_MAX 64
#define FILE_BYTES_MAX (256 * 1024)

/* systemd.unit(5), the first that has a file counts; the last one is where /lib is no link to /usr/lib */
static const char *const places[] = { "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
				      "/usr/lib/systemd/system", "/lib/systemd/system" };

#define PLACES (sizeof(places) / sizeof(places[0]))

struct dropins {
	char names[DROPINS_MAX][NAME_MAX + 1], paths[DROPINS_MAX][PATH_MAX];
	size_t count;
};

/* Adds what a file says. One that can't be read says nothing. */
static bool read_unit(struct unit_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text = fd >= 0 ? malloc(FILE_BYTES_MAX + 1) : NULL;
	ssize_t n = text ? read(fd, text, FILE_BYTES_MAX) : -1;
	bool right = true;

	if (n >= 0) {
		text[n] = '\0';
		right = unit_file_parse(file, text);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return right;
}

/* Finds the file of exactly this name. Returns false if there is none. */
static bool find_file(const char *name, char path[static PATH_MAX])
{
	struct stat st;

	for (size_t i = 0; i < PLACES; i++)
		if (snprintf(path, PATH_MAX, "%s/%s", places[i], name) < PATH_MAX && lstat(path, &st) == 0)
			return true;
	return false;
}

/*
 * Finds a unit's file, and its real name if @name is an alias, which is a link. A link from /etc to the file of the same name
 * elsewhere is how units are "linked", and no alias.
 */
static bool find_unit(char name[static UNIT_NAME_MAX], char path[static PATH_MAX])
{
	char target[PATH_MAX], template[UNIT_NAME_MAX];

	for (int i = 0; i < ALIASES_MAX; i++) {
		const char *base;
		ssize_t len;

		strcpy(template, name);
		unit_name_template(template);
		if (!find_file(name, path) && !find_file(template, path))
			return false;
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			return true;
		target[len] = '\0';
		base = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
		if (strcmp(target, "/dev/null") == 0 || strcmp(base, name) == 0 || strcmp(base, template) == 0 ||
		    strlen(base) >= UNIT_NAME_MAX)
			return true;
		strcpy(name, base);
	}
	return false;
}

static bool is_masked(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 || S_ISCHR(st.st_mode) || st.st_size == 0;
}

/* Notes the drop-ins in a directory; one whose name is known already is hidden by that. */
static void list_dropins(struct dropins *out, const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && out->count < DROPINS_MAX) {
		size_t len = strlen(entry->d_name);
		bool known = false;

		if (len < 5 || strcmp(entry->d_name + len - 5, ".conf") != 0)
			continue;
		for (size_t i = 0; i < out->count; i++)
			known |= strcmp(out->names[i], entry->d_name) == 0;
		if (known || snprintf(out->paths[out->count], PATH_MAX, "%s/%s", directory, entry->d_name) >= PATH_MAX)
			continue;
		strcpy(out->names[out->count++], entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* Reads the drop-ins in the order of their names, wherever they are. */
static bool read_dropins(struct unit_file *file, struct dropins *dropins)
{
	bool right = true;

	for (size_t done = 0; done < dropins->count; done++) {
		size_t first = 0;

		for (size_t i = 1; i < dropins->count; i++)
			if (dropins->names[i][0] && (!dropins->names[first][0] ||
						     strcmp(dropins->names[i], dropins->names[first]) < 0))
				first = i;
		right = right && read_unit(file, dropins->paths[first]);
		dropins->names[first][0] = '\0';
	}
	return right;
}

static bool read_all(struct unit_file *file, const char *name, const char *path)
{
	static struct dropins dropins;
	char template[UNIT_NAME_MAX], directory[PATH_MAX];
	const char *units[] = { name, template, "service" };

	strcpy(template, name);
	unit_name_template(template);
	dropins.count = 0;
	for (size_t unit = 0; unit < sizeof(units) / sizeof(units[0]); unit++)
		for (size_t i = 0; i < PLACES; i++)
			if (snprintf(directory, sizeof(directory), "%s/%s.d", places[i], units[unit]) < PATH_MAX)
				list_dropins(&dropins, directory);
	return read_unit(file, path) && read_dropins(file, &dropins);
}

char *unit_search(const char *asked)
{
	char name[UNIT_NAME_MAX], path[PATH_MAX] = "", *text = NULL;
	struct unit_file file = { 0 };
	bool found, right = true;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	snprintf(name, sizeof(name), "%s", asked);
	found = find_unit(name, path);
	fprintf(out, "Id=%s\nLoadState=%s\nFragmentPath=%s\n", name,
		!found ? "not-found" : is_masked(path) ? "masked" : "loaded", found ? path : "");
	if (found && !is_masked(path)) {
		right = read_all(&file, name, path);
		unit_file_print(&file, out);
		unit_file_fini(&file);
	}
	if (fclose(out) == 0 && right)
		return text;
	free(text);
	return NULL;
}
