/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - convertd's command line */
#ifndef CONVERTD_OPTIONS_H
#define CONVERTD_OPTIONS_H

#include "common/sockaddr.h"
#include "convertd/log.h"

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_LISTEN_MAX 64

struct options {
	union sockaddr_ip listen[OPTIONS_LISTEN_MAX];
	size_t listen_count;
	unsigned connect_timeout; /* seconds */
	unsigned request_timeout; /* seconds */
	enum log_level log_level;
	bool syn_window_fix;
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_EXIT,  /* --help or --version has been answered */
	OPTIONS_USAGE, /* what is wrong was said on standard error */
};

/* Fills @options, with defaults for all that @argv doesn't say. */
enum options_result options_parse(struct options *options, int argc, char *argv[]);

#endif
