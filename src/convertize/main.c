/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertize: makes programs, services and sessions use a converter, and checks whether that works here */
#include "config.h"

#include "convertize/check/check.h"
#include "convertize/enable/services.h"
#include "convertize/enable/login_session.h"
#include "convertize/options/conf.h"
#include "convertize/paths/paths_command.h"
#include "convertize/run/launch.h"
#include "convertize/status/status.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads the defaults for running and checking. Returns false after naming the mistake. */
static bool load_defaults(struct options *options)
{
	static struct conf_files files; /* messages name them */
	bool right = conf_load(&files, options, false);

	options_find_library(options);
	return right;
}

int main(int argc, char *argv[])
{
	static struct options options;

	switch (options_parse(&options, argc, argv)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_EXIT:
		return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_USAGE:
		return options.command == COMMAND_RUN ? STATUS_NOT_RUN : STATUS_USAGE;
	}
	switch (options.command) {
	case COMMAND_CHECK:
		return load_defaults(&options) ? check(&options) : STATUS_USAGE;
	case COMMAND_ENABLE:
		return options.session ? login_session_enable(&options) : services_enable(&options);
	case COMMAND_DISABLE:
		return options.session ? login_session_disable(&options) : services_disable(&options);
	case COMMAND_LIST:
		return services_list(&options);
	case COMMAND_ENVIRONMENT:
		return login_session_environment(&options);
	case COMMAND_PATHS:
		return paths(&options);
	case COMMAND_STATUS:
	case COMMAND_TOP:
		return status(&options);
	default:
		return load_defaults(&options) ? launch(&options) : STATUS_NOT_RUN;
	}
}
