/* SPDX-License-Identifier: BSD-3-Clause */
/* units_list.c - "convertize list": which services are enabled, and whether they run so */
#include "config.h"

#include "convertize/enable/unit_dropin.h"
#include "convertize/enable/unit_place.h"
#include "convertize/enable/unit_query.h"
#include "convertize/enable/session.h"
#include "convertize/enable/units.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOTED "/run/systemd/system" /* sd_booted(3) */
#define DIRECTORY_SUFFIX ".d"
#define MAPS_LINE_MAX (PATH_MAX + 256)

/* Does a process have the library in its memory? -1: that isn't known. */
static int has_library(const char *pid)
{
	char path[64], line[MAPS_LINE_MAX];
	FILE *file;
	int has = 0;

	snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (!has && fgets(line, sizeof(line), file))
		has = strstr(line, "/libconvert.so") != NULL;
	has = ferror(file) ? -1 : has;
	fclose(file);
	return has;
}

/* What is so of a unit that has our drop-in. */
static const char *state_of(const struct unit_scope *scope, const char *name)
{
	const char *pid;
	struct unit unit;
	int ret, has = 0;
	bool active;

	if (unit_name_is_template(name))
		return "template";
	if (scope->offline)
		return "enabled";
	/* without a service manager, nothing is said once for each unit */
	ret = scope->user || access(BOOTED, F_OK) == 0 ? unit_query(&unit, scope, name) : -ENOENT;
	if (ret < 0)
		return "unknown";
	pid = unit_property(&unit.properties, "MainPID");
	active = *pid && strcmp(pid, "0") != 0;
	if (active)
		has = has_library(pid);
	unit_fini(&unit);
	if (ret > 0)
		return "not installed";
	return !active ? "not running" : has > 0 ? "converted" : has < 0 ? "unknown" : "needs a restart";
}

/* Is it the directory of a service's drop-ins? Then its name is cut to the unit's. */
static bool take_unit(char name[static UNIT_NAME_MAX], const char *directory)
{
	size_t len = strlen(directory), suffix = strlen(DIRECTORY_SUFFIX);

	if (len <= suffix || len - suffix >= UNIT_NAME_MAX || strcmp(directory + len - suffix, DIRECTORY_SUFFIX) != 0)
		return false;
	snprintf(name, UNIT_NAME_MAX, "%.*s", (int)(len - suffix), directory);
	len = strlen(name);
	return len > strlen(UNIT_SERVICE) && strcmp(name + len - strlen(UNIT_SERVICE), UNIT_SERVICE) == 0;
}

static void print(const char *name, const char *state, const char *converters)
{
	printf("%-32s %-16s %s\n", name, state, converters);
}

/* Prints the line of one directory, if it has a drop-in of ours. */
static bool list_directory(const struct unit_scope *scope, const char *units, const char *directory)
{
	char name[UNIT_NAME_MAX], path[PATH_MAX], *text, *converters;

	if (!take_unit(name, directory) || !place_of(path, units, name, UNIT_DROPIN_NAME))
		return false;
	text = place_read(path);
	if (!text)
		return false;
	converters = unit_dropin_variable(text, "CONVERT_ADDR");
	print(name, state_of(scope, name), converters ? converters : "?");
	free(converters);
	free(text);
	return true;
}

int units_list(const struct options *options)
{
	struct unit_scope scope = { .user = options->user, .offline = options->root };
	struct dirent **entries;
	char units[PATH_MAX], below[2 * PATH_MAX];
	int count, found = 0;

	if (!place_units(units, options->user))
		return OPTIONS_UNITS_USAGE;
	snprintf(below, sizeof(below), "%s%s", options->root ? options->root : "", units);
	if (strlen(below) < PATH_MAX)
		strcpy(units, below);
	count = scandir(units, &entries, NULL, alphasort);
	if (count < 0 && errno != ENOENT) {
		fprintf(stderr, "convertize: %s: %s\n", units, strerror(errno));
		return OPTIONS_UNITS_FAILED;
	}
	print("UNIT", "STATE", "CONVERTERS");
	for (int i = 0; i < count; i++) {
		found += list_directory(&scope, units, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (!found)
		puts("No service is enabled; convertize enable UNIT does that.");
	if (!options->root)
		session_list();
	return fflush(stdout) == 0 ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}
