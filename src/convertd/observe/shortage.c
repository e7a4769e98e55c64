/* SPDX-License-Identifier: BSD-3-Clause */
/* shortage.c - warns that clients are refused or have to wait, since connections or descriptors are used up */
#include "config.h"

#include "convertd/observe/shortage.h"

#include "convertd/base/log.h"
#include "convertd/config/settings.h"
#include "convertd/config/terms.h"

#include <errno.h>
#include <string.h>

void shortage_of_connections(const struct terms *terms)
{
	static struct log_limit limit;
	unsigned suppressed;

	if (!log_limit_pass(&limit, &suppressed))
		return;
	if (terms->settings->limits.connections.total)
		log_warning("all %u connections of --max-connections are taken: clients are refused (%u "
			    "more since the last such line); raise it, or the number of converters",
			    terms->limits.connections.total, suppressed);
	else
		log_warning("all %u connections that the limit of open files (%d) allows are taken: "
			    "clients are refused (%u more since the last such line); raise it "
			    "(LimitNOFILE=, ulimit -Hn)",
			    terms->limits.connections.total, terms->last_fd + 1, suppressed);
}

void shortage_of_files(int error, const char *what)
{
	static struct log_limit limit;
	unsigned suppressed;

	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	if (log_limit_pass(&limit, &suppressed))
		log_warning("%s: %s (%u times more since the last such line); raise the limit of open "
			    "files (LimitNOFILE=, ulimit -Hn; for all processes fs.file-max)",
			    what, strerror(error), suppressed);
}
