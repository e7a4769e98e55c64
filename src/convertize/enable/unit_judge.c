/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_judge.c - what a unit's sandbox (systemd.exec(5)) means for libconvert.so
 *
 * A restriction that the library runs into would show itself late: as a line of ld.so in the journal and a service that goes
 * on unconverted, or as a service that the kernel kills at its first connection. So it is found before anything is written.
 */
#include "config.h"

#include "convertize/enable/unit_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRNO_MAX 4095

/* Without these a program makes no TCP connections. */
static const char *const calls_of_clients[] = { "socket", "connect" };

/* The library makes these as well, whatever the program does. Older kernels and musl have no others for them. */
static const char *const calls_of_library[] = { "dup3", "fcntl", "getpeername", "getsockname", "getsockopt", "recvfrom",
						"recvmsg", "rt_sigprocmask", "sendmsg", "setsockopt" };

/* And these, for which it has something else if they fail. It is no use where they don't fail but end the process. */
static const char *const calls_that_may_fail[] = { "getrandom", "gettid", "kcmp", "process_vm_readv", "process_vm_writev" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void unit_findings_add(struct unit_findings *findings, enum unit_level level, const char *format, ...)
{
	va_list args;

	if (findings->count == UNIT_FINDINGS_MAX)
		return;
	findings->list[findings->count].level = level;
	va_start(args, format);
	vsnprintf(findings->list[findings->count++].text, UNIT_FINDING_MAX, format, args);
	va_end(args);
}

enum unit_level unit_findings_worst(const struct unit_findings *findings)
{
	enum unit_level worst = UNIT_DOUBTFUL;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->list[i].level > worst)
			worst = findings->list[i].level;
	return worst;
}

/*
 * Does a list permit something? With "~" in front it names what is forbidden, without what is permitted. "~" alone is how
 * systemctl shows that nothing was said. An entry of a filter may have an error behind a colon.
 */
static bool permits(const char *list, const char *what)
{
	bool names_forbidden = *list == '~', found = false;
	char word[UNIT_WORD_MAX];

	list += names_forbidden;
	while (!found && unit_word_next(&list, word)) {
		word[strcspn(word, ":")] = '\0';
		found = strcmp(word, what) == 0;
	}
	return found != names_forbidden;
}

static bool was_set(const char *list)
{
	return strcmp(list, "~") != 0;
}

static void judge_network(struct unit_findings *findings, const struct unit_properties *unit)
{
	const char *families = unit_property(unit, "RestrictAddressFamilies");
	const char *deny = unit_property(unit, "IPAddressDeny");
	size_t next = 0;

	if (unit_property_yes(unit, "PrivateNetwork"))
		unit_findings_add(findings, UNIT_USELESS, "PrivateNetwork=yes: it has no network, so that there is nothing to convert");
	/* an empty list is "none"; systemd that doesn't know the property prints no line */
	if (unit_property_next(unit, "RestrictAddressFamilies", &next) && was_set(families) &&
	    !permits(families, "AF_INET") && !permits(families, "AF_INET6"))
		unit_findings_add(findings, UNIT_USELESS,
				  "RestrictAddressFamilies= leaves it neither AF_INET nor AF_INET6: it makes no TCP connections");
	if (*deny)
		unit_findings_add(findings, UNIT_DOUBTFUL,
				  "IPAddressDeny= forbids addresses (%.200s); permit the converter's, by IPAddressAllow=", deny);
}

static void judge_calls(struct unit_findings *findings, const struct unit_properties *unit)
{
	const char *filter = unit_property(unit, "SystemCallFilter");
	long error = strtol(unit_property(unit, "SystemCallErrorNumber"), NULL, 10);
	bool kills = error < 1 || error > ERRNO_MAX;
	size_t next = 0;

	if (!unit_property_next(unit, "SystemCallFilter", &next) || !*filter || !was_set(filter))
		return;
	for (size_t i = 0; i < COUNT(calls_of_clients); i++) {
		if (permits(filter, calls_of_clients[i]))
			continue;
		unit_findings_add(findings, UNIT_USELESS, "SystemCallFilter= forbids %s(): it makes no TCP connections",
				  calls_of_clients[i]);
		return;
	}
	for (size_t i = 0; i < COUNT(calls_of_library) + (kills ? COUNT(calls_that_may_fail) : 0); i++) {
		const char *call = i < COUNT(calls_of_library) ? calls_of_library[i] :
								 calls_that_may_fail[i - COUNT(calls_of_library)];

		if (!permits(filter, call))
			unit_findings_add(findings, kills ? UNIT_HARMFUL : UNIT_USELESS,
					  "SystemCallFilter= forbids %s(), which the library needs; permit it by "
					  "\"SystemCallFilter=%s\" in a drop-in",
					  call, call);
	}
}

/* Is a file in a directory, or the same as it? The directory's options, such as ":ro", and marks, such as "-", are left out. */
static bool is_below(const char *path, const char *directory)
{
	size_t len;

	directory += strspn(directory, "-+");
	len = strcspn(directory, ":");
	while (len && directory[len - 1] == '/')
		len--;
	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool list_covers(const char *list, const char *path)
{
	char word[UNIT_WORD_MAX];

	while (unit_word_next(&list, word))
		if (is_below(path, word))
			return true;
	return false;
}

static void judge_files(struct unit_findings *findings, const struct unit_properties *unit, const char *library)
{
	static const char *const hiding[] = { "InaccessiblePaths", "TemporaryFileSystem" };
	static const char *const homes[] = { "/home", "/root", "/run/user" };
	const char *image = unit_property(unit, "RootImage");
	const char *home = unit_property(unit, "ProtectHome");

	for (size_t i = 0; i < COUNT(hiding); i++)
		if (list_covers(unit_property(unit, hiding[i]), library))
			unit_findings_add(findings, UNIT_USELESS, "%s= hides the library %s; install that elsewhere", hiding[i],
					  library);
	for (size_t i = 0; i < COUNT(homes); i++)
		if (is_below(library, homes[i]) && (strcmp(home, "yes") == 0 || strcmp(home, "tmpfs") == 0))
			unit_findings_add(findings, UNIT_USELESS, "ProtectHome=%s hides the library %s; install that elsewhere",
					  home, library);
	if (unit_property_yes(unit, "PrivateTmp") && (is_below(library, "/tmp") || is_below(library, "/var/tmp")))
		unit_findings_add(findings, UNIT_USELESS, "PrivateTmp=yes hides the library %s; install that elsewhere", library);
	if (list_covers(unit_property(unit, "NoExecPaths"), library) && !list_covers(unit_property(unit, "ExecPaths"), library))
		unit_findings_add(findings, UNIT_USELESS,
				  "NoExecPaths= forbids it to load the library %s; permit that by ExecPaths=", library);
	if (*image)
		unit_findings_add(findings, UNIT_USELESS, "RootImage=%s: its files are an image's, which is not looked into", image);
}

static void judge_environment(struct unit_findings *findings, const struct unit_properties *unit)
{
	static const char *const needed[] = { "LD_PRELOAD", "CONVERT_ADDR" };

	for (size_t i = 0; i < COUNT(needed); i++)
		if (unit_list_has(unit_property(unit, "UnsetEnvironment"), needed[i]))
			unit_findings_add(findings, UNIT_USELESS, "UnsetEnvironment=%s takes away what the library needs", needed[i]);
}

void unit_judge_sandbox(struct unit_findings *findings, const struct unit_properties *unit, const char *library)
{
	judge_network(findings, unit);
	judge_calls(findings, unit);
	judge_files(findings, unit, library);
	judge_environment(findings, unit);
}
