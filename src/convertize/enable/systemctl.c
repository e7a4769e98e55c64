/* SPDX-License-Identifier: BSD-3-Clause */
/* systemctl.c - questions to systemd, by systemctl(1) as a child process */
#include "config.h"

#include "convertize/enable/systemctl.h"

#include "common/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "systemctl"
#define WORDS_MAX 16

/* Its own messages are lines; they are printed as ours. */
static void print_messages(char *messages)
{
	for (char *line = strtok(messages, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(stderr, "convertize: " PROGRAM ": %s\n", line);
}

static int tell_missing(int error)
{
	if (error == ENOENT)
		fputs("convertize: " PROGRAM ": command not found; services are enabled by systemd's drop-ins: where another "
		      "service manager is used, put convertize in front of the service's command; for a system in a "
		      "directory say --root\n",
		      stderr);
	else
		fprintf(stderr, "convertize: " PROGRAM ": %s\n", strerror(error));
	return -error;
}

int systemctl(bool user, const char *const words[], char **output)
{
	const char *argv[WORDS_MAX + 4] = { PROGRAM, "--no-pager", user ? "--user" : "--system" };
	struct child_output said;
	int ret;

	for (int i = 0; words[i] && i < WORDS_MAX; i++)
		argv[3 + i] = words[i];
	ret = child_run(argv, CHILD_NO_TIMEOUT, &said);
	if (ret < 0)
		return tell_missing(-ret);
	if (said.status) {
		print_messages(said.messages);
		fprintf(stderr, "convertize: " PROGRAM " %s has failed; is systemd the service manager here? --root / does "
				"without it\n",
			words[0]);
	} else if (output) {
		*output = said.text;
		said.text = NULL;
	}
	free(said.text);
	free(said.messages);
	return said.status ? -EIO : 0;
}
