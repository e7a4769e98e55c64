/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf_load.c - finds and reads convertize.conf
 *
 * A file decides to which host the connections of other people's programs go, so that it has to be the administrator's or
 * the user's own: one that somebody else owns, or may write to, is not read. Directories aren't looked at, as whoever may
 * write to /etc needs no such file. A file that --config names is the user's own choice.
 */
#include "config.h"

#include "convertize/options/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_problem(const char *line)
{
	fprintf(stderr, "convertize: %s\n", line);
}

/* Whose file it is; this says which faults of it are mistakes, and which only lead to a warning. */
enum owner { OWNER_SYSTEM, OWNER_USER, OWNER_NAMED };

/* Is the file to be read? *@failed is set if it is not, and convertize is not to go on without it. */
static bool may_read(const struct stat *st, const char *path, enum owner owner, bool *failed)
{
	if (owner != OWNER_NAMED && st->st_uid != 0 && st->st_uid != geteuid()) {
		*failed = owner == OWNER_SYSTEM;
		fprintf(stderr, "convertize: %s%s: belongs to user %u, and is not read; %s\n", *failed ? "" : "warning: ", path,
			(unsigned int)st->st_uid, *failed ? "chown it to root" : "--config none says that none is wanted");
		return false;
	}
	*failed = true;
	if (!S_ISREG(st->st_mode))
		fprintf(stderr, "convertize: %s: is not a regular file\n", path);
	else if (owner != OWNER_NAMED && st->st_mode & (S_IWGRP | S_IWOTH))
		fprintf(stderr, "convertize: %s: others may write to it (mode %04o); chmod go-w it\n", path,
			(unsigned int)st->st_mode & 07777);
	else if (st->st_size > CONF_BYTES_MAX)
		fprintf(stderr, "convertize: %s: has %lld bytes; %d are the most\n", path, (long long)st->st_size,
			CONF_BYTES_MAX);
	else
		*failed = false;
	return !*failed;
}

/* Reads at most CONF_BYTES_MAX bytes. Returns how many, or -1. */
static ssize_t read_text(int fd, char *text)
{
	size_t len = 0;
	ssize_t n;

	while (len < CONF_BYTES_MAX && (n = read(fd, text + len, CONF_BYTES_MAX - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0)
			len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Reads the next file of @out, whose path is set. Returns false if convertize is not to go on. */
static bool read_file(struct conf_files *out, enum owner owner)
{
	static char text[CONF_BYTES_MAX + 1];
	struct conf *conf = &out->files[out->count];
	struct problems problems = { .print = print_problem };
	int fd = open(conf->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool failed = false, wanted;
	struct stat st;
	ssize_t len;

	if (fd < 0 && owner != OWNER_NAMED && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0 || fstat(fd, &st) < 0) {
		failed = owner == OWNER_NAMED || errno != EACCES;
		fprintf(stderr, "convertize: %s%s: %s\n", failed ? "" : "warning: not read: ", conf->path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return !failed;
	}
	wanted = may_read(&st, conf->path, owner, &failed);
	len = wanted ? read_text(fd, text) : 0;
	if (len < 0)
		fprintf(stderr, "convertize: %s: %s\n", conf->path, strerror(errno));
	close(fd);
	if (!wanted || len < 0)
		return !failed && len >= 0;
	conf->is_system = owner != OWNER_USER;
	conf_parse(conf, text, (size_t)len, &problems);
	memset(text, 0, sizeof(text)); /* it may have a cookie in it */
	out->count++;
	return problems.count == 0;
}

/* Sets what the environment doesn't have and means something to the command. */
static bool apply(struct options *options, const struct conf *conf)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		if (!conf->values[i] || !(option_table[i].scope & SCOPE(options->command)) || getenv(option_table[i].variable))
			continue;
		if (setenv(option_table[i].variable, conf->values[i], 1) < 0) {
			fprintf(stderr, "convertize: %s: %s\n", option_table[i].variable, strerror(errno));
			return false;
		}
		options->origin[i] = (struct options_origin){ conf->path, conf->lines[i] };
	}
	return true;
}

bool conf_user_path(char path[static PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int len;

	if (config && *config == '/')
		len = snprintf(path, PATH_MAX, "%s/%s", config, CONF_NAME);
	else if (home && *home == '/')
		len = snprintf(path, PATH_MAX, "%s/.config/%s", home, CONF_NAME);
	else
		return false;
	return len < PATH_MAX;
}

bool conf_load(struct conf_files *out, struct options *options, bool system_only)
{
	const char *named = getenv(option_table[OPTION_CONFIG].variable);
	bool right = true;

	memset(out, 0, sizeof(*out));
	if (named && strcmp(named, "none") == 0)
		return true;
	if (named && *named) {
		if (snprintf(out->files[0].path, PATH_MAX, "%s", named) >= PATH_MAX) {
			fprintf(stderr, "convertize: --config: %.60s...: the name is too long\n", named);
			return false;
		}
		right = read_file(out, OWNER_NAMED);
	} else {
		if (!system_only && conf_user_path(out->files[0].path))
			right = read_file(out, OWNER_USER);
		strcpy(out->files[out->count].path, CONF_SYSTEM);
		right = read_file(out, OWNER_SYSTEM) && right;
	}
	for (size_t i = 0; right && i < out->count; i++)
		right = apply(options, &out->files[i]);
	return right;
}

void conf_files_fini(struct conf_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		conf_fini(&files->files[i]);
	files->count = 0;
}
