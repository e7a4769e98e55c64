/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - what happens when the library is loaded
 *
 * The order matters: the next functions first, then the configuration, which makes
 * the hooks do anything at all. All of it is immutable afterwards.
 */
#include "config.h"

#include "client/settings.h"
#include "shim/conversion.h"
#include "shim/handover.h"
#include "shim/leave.h"
#include "shim/log.h"
#include "shim/next.h"

#include <stdlib.h>
#include <sys/auxv.h>

/* A set-user-ID program would write its log, and believe what is handed over, for whoever calls it. */
static const char *environment(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}

__attribute__((constructor)) static void init(void)
{
	static struct settings settings;

	next_bind();
	settings_read(&settings, environment);
	log_open(settings.log);
	if (!settings.enabled)
		log_line("nothing is converted: %s", settings.problem);
	conversion_init(&settings);
	handover_init();
	handover_adopt();
}

__attribute__((destructor)) static void fini(void)
{
	if (!conn_none_attentive())
		leave_all(LEAVE_ALL);
}
