/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertize: makes programs, services and sessions use a converter, and checks whether that works here */
#include "config.h"

#include "convertize/check/check.h"
#include "convertize/enable/enable.h"
#include "convertize/options/command_line.h"
#include "convertize/paths/paths_command.h"
#include "convertize/run/launch.h"
#include "convertize/status/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[])
{
	static struct conf_files files; /* messages name them */
	static struct options options;

	switch (options_parse(&options, argc, argv)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_EXIT:
		return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_USAGE:
		return options.command == COMMAND_RUN ? STATUS_NOT_RUN : STATUS_USAGE;
	}
	if (options.command != COMMAND_RUN)
		signal(SIGCHLD, SIG_DFL); /* the caller may have it ignored: then nobody could wait for the programs that we start */
	switch (options.command) {
	case COMMAND_CHECK:
		return conf_load(&files, &options, false) ? check(&options) : STATUS_USAGE;
	case COMMAND_ENABLE:
		return options_has(&options, OPTION_SESSION) ? login_session_enable(&options) : services_enable(&options);
	case COMMAND_DISABLE:
		return options_has(&options, OPTION_SESSION) ? login_session_disable(&options) : services_disable(&options);
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
		return conf_load(&files, &options, false) ? launch(&options) : STATUS_NOT_RUN;
	}
}
