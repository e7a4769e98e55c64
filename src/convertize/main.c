/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - convertize: runs programs through a converter, and tells whether that works here */
#include "config.h"

#include "convertize/check.h"
#include "convertize/launch.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[])
{
	static struct options options;

	switch (options_parse(&options, argc, argv)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_EXIT:
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_USAGE:
		return options.check ? OPTIONS_CHECK_USAGE : OPTIONS_STATUS_FAILED;
	}
	return options.check ? check(&options) : launch(&options);
}
