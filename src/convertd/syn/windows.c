/* SPDX-License-Identifier: BSD-3-Clause */
/* windows.c - has the windows of SYNs corrected (syn_window.c), and warns where that is impossible */
#include "config.h"

#include "convertd/syn/windows.h"

#include "convertd/base/log.h"
#include "convertd/rights/rights.h"

#include <errno.h>
#include <string.h>

static const char *remedy(int error)
{
	if (error == -EPERM || error == -EACCES)
		return "give convertd CAP_NET_ADMIN";
	if (error == -ENOSYS)
		return "build it with libnftnl";
	if (error == -ENOMEM)
		return "free some";
	return "use Linux 5.12 or later with CONFIG_NF_TABLES_INET";
}

bool windows_correct(const struct settings *settings, bool wanted)
{
	int error = rights_correct_windows(settings->listen, wanted ? settings->listen_count : 0);

	if (!error || !wanted)
		return !error && wanted;
	log_warning("SYN windows are not corrected (%s): clients with several paths may need a round "
		    "trip more, and MPTCP downloads of others that send data in the SYN may be slower over "
		    "several paths than over one; %s, or pass --no-syn-window-fix to do without",
		    error == -ENOSYS ? "convertd was built without libnftnl" : strerror(-error), remedy(error));
	return false;
}
