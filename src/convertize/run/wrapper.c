/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrapper.c - programs that run others with a preload library or an environment of their own
 *
 * This file lists the wrappers that are known to lose or disturb the library. It doesn't examine the programs that they start:
 * libconvert.so itself warns of a program that it isn't loaded into.
 */
#include "config.h"

#include "convertize/run/launch.h"

#include "common/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_BYTES 8192 /* of a script, in which we look for a wrapper */
#define SEPARATORS ": \t\n" /* of LD_PRELOAD; ld.so(8) documents the first two; glibc and musl accept all blanks */
#define TO_PROXIES \
	"takes the program's connections to its proxies: only those to the proxies are converted, and " \
	"none if they are on this machine"
#define OTHER_ROOT "starts its program in another root directory, where libconvert.so may be missing"
#define NO_PRELOAD "starts programs with an environment of its own, without LD_PRELOAD"

static const struct wrapper wrappers[] = {
	{ "mptcpize", NULL, true, "replaces LD_PRELOAD, and libconvert.so with it",
	  "put it in front: mptcpize run convertize ...", WRAPPER_SUPERVISED },
	{ "proxychains", PROXIES_PROXYCHAINS, false, TO_PROXIES, NULL, WRAPPER_UNSUPERVISED },
	{ "tsocks", PROXIES_TSOCKS, false, TO_PROXIES, NULL, WRAPPER_UNSUPERVISED },
	{ "socksify", PROXIES_DANTE, false, TO_PROXIES, NULL, WRAPPER_UNSUPERVISED },
	{ "torsocks", PROXIES_TORSOCKS, true,
	  "takes the program's connections to Tor on this machine: none is left to be converted",
	  "run tor itself under convertize, and the program under torsocks alone", WRAPPER_UNSUPERVISED },
	{ "torify", NULL, true,
	  "takes the program's connections to Tor on this machine: none is left to be converted",
	  "run tor itself under convertize, and the program under torify alone", WRAPPER_UNSUPERVISED },
	{ "chroot", NULL, false, OTHER_ROOT, NULL, WRAPPER_SUPERVISED },
	{ "sudo", NULL, true, NO_PRELOAD, "put convertize in between: sudo convertize ...",
	  WRAPPER_SUPERVISED_BY_ROOT },
	{ "doas", NULL, true, NO_PRELOAD, "put convertize in between: doas convertize ...",
	  WRAPPER_SUPERVISED_BY_ROOT },
	{ "pkexec", NULL, true, NO_PRELOAD, "put convertize in between: pkexec convertize ...",
	  WRAPPER_SUPERVISED_BY_ROOT },
};

/* Their programs run in sandboxes; other commands of theirs are ordinary programs. */
static const struct wrapper sandboxes[] = {
	{ "snap", NULL, true, "starts its program by a launcher with privileges, whose loader ignores LD_PRELOAD",
	  "take the program from another package than the snap", WRAPPER_UNSUPERVISED },
	{ "flatpak", NULL, false, "starts its program in a sandbox, where libconvert.so may be missing",
	  "see Flatpak in doc/applications.md", WRAPPER_UNSUPERVISED },
};

static const struct wrapper env_preload = {
	"env", NULL, true, "replaces LD_PRELOAD, and libconvert.so with it",
	"set it in front of convertize, which adds to it: env LD_PRELOAD=... convertize ...", WRAPPER_SUPERVISED
};

static const struct wrapper unshare_root = { "unshare", NULL, false, OTHER_ROOT, NULL, WRAPPER_SUPERVISED };

/* Commands that run the program after their own options, and keep LD_PRELOAD or add to it. */
static const char *const transparent[] = {
	"chrt",	  "env",     "faketime", "ionice", "nice",    "nohup", "prlimit",
	"setpriv", "setsid", "stdbuf",	 "taskset", "time", "timeout",
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool is_transparent(const char *name)
{
	for (size_t i = 0; i < sizeof(transparent) / sizeof(transparent[0]); i++)
		if (strcmp(name, transparent[i]) == 0)
			return true;
	return false;
}

/* Is @name the wrapper's name, perhaps with a version number? "proxychains4" is proxychains, "sudoku" isn't sudo. */
static bool is_command(const struct wrapper *wrapper, const char *name)
{
	size_t len = strlen(wrapper->command);

	return starts_with(name, wrapper->command) && strspn(name + len, "0123456789") == strlen(name + len);
}

/* Is @word an argument and no program's name: an option, a variable, a number (nice), or a time (faketime)? */
static bool is_argument(const char *word)
{
	return *word == '-' || *word == '+' || strchr(word, '=') || strspn(word, "0123456789") > 0;
}

/* Does unshare(1) with these arguments change the root directory, but not the network, to which a supervisor couldn't follow? */
static bool changes_root(char *const words[])
{
	bool root = false;

	for (; *words && **words == '-' && strcmp(*words, "--") != 0; words++) {
		if (starts_with(*words, "--net") || (words[0][1] != '-' && strchr(*words, 'n')))
			return false;
		if (starts_with(*words, "-R") || starts_with(*words, "--root")) {
			root = true;
			words += (strcmp(*words, "-R") == 0 || strcmp(*words, "--root") == 0) && words[1];
		}
	}
	return root;
}

const struct wrapper *wrapper_of_command(char *const words[])
{
	for (; *words; words++) {
		const char *name = program_base_name(*words, strlen(*words));

		for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
			if (is_command(&wrappers[i], name))
				return &wrappers[i];
		for (size_t i = 0; i < sizeof(sandboxes) / sizeof(sandboxes[0]); i++)
			if (strcmp(name, sandboxes[i].command) == 0 && words[1] && strcmp(words[1], "run") == 0)
				return &sandboxes[i];
		if (strcmp(name, unshare_root.command) == 0 && changes_root(words + 1))
			return &unshare_root;
		if (!is_transparent(name))
			return NULL;
		while (words[1] && is_argument(words[1]))
			if (starts_with(*++words, "LD_PRELOAD=") && !strstr(*words, "libconvert.so"))
				return &env_preload;
	}
	return NULL;
}

/* Does the script, such as Ubuntu's /usr/bin/firefox, mention this text in its first lines? */
static bool mentions(const char *path, const char *text)
{
	char start[SCRIPT_BYTES];
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(start, 1, sizeof(start), file) : 0;

	if (file)
		fclose(file);
	return len > 2 && memcmp(start, "#!", 2) == 0 && memmem(start, len, text, strlen(text));
}

const struct wrapper *wrapper_of_file(const char *path)
{
	char real[PATH_MAX];

	/* each program of a snap is a link to snap(8) */
	if ((realpath(path, real) && strcmp(real, path) != 0 && strcmp(program_base_name(real, strlen(real)), sandboxes[0].command) == 0) ||
	    mentions(path, "/snap/bin/"))
		return &sandboxes[0];
	return mentions(path, "flatpak run ") ? &sandboxes[1] : NULL;
}

/* Returns the next name in a list, with its length in bytes; NULL at the end. */
static const char *next_name(const char *list, size_t *len)
{
	list += strspn(list, SEPARATORS);
	*len = strcspn(list, SEPARATORS);
	return *len ? list : NULL;
}

const struct wrapper *wrapper_of_preloads(const char *list)
{
	size_t len;

	for (list = next_name(list ? list : "", &len); list; list = next_name(list + len, &len))
		for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
			if (wrappers[i].library && starts_with(program_base_name(list, len), wrappers[i].library))
				return &wrappers[i];
	return NULL;
}

/*
 * Copies the names in @list, each with a colon behind it, without those whose file is named @base. Returns the copy, which the caller
 * frees, with room for @room bytes more.
 */
static char *names_without(const char *list, const char *base, size_t room)
{
	const char *name;
	size_t len, used = 0, wanted = strlen(base);
	char *out = malloc((list ? strlen(list) : 0) + room + 2);

	if (!out)
		return NULL;
	for (name = next_name(list ? list : "", &len); name; name = next_name(name + len, &len)) {
		const char *found = program_base_name(name, len);

		if ((size_t)(name + len - found) == wanted && memcmp(found, base, wanted) == 0)
			continue;
		memcpy(out + used, name, len);
		used += len;
		out[used++] = ':';
	}
	out[used] = '\0';
	return out;
}

char *wrapper_preloads_with(const char *list, const char *library)
{
	char *out = names_without(list, program_base_name(library, strlen(library)), strlen(library));

	return out ? strcat(out, library) : NULL;
}

char *wrapper_preloads_without(const char *list, const char *base)
{
	char *out = names_without(list, base, 0);

	if (out && *out)
		out[strlen(out) - 1] = '\0';
	return out;
}
