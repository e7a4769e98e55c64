/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - initializes the library when it is loaded, and handles forks
 *
 * The order matters: first we look up the functions behind the hooks; then we read the configuration, without which the hooks pass
 * everything on. Both stay constant afterwards, so that hooks read them without a lock.
 */
#include "config.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/converters.h"
#include "client/settings.h"
#include "common/clock.h"
#include "host/host_model.h"
#include "shim/connect/conversion.h"
#include "shim/connect/connect.h"
#include "shim/process/process.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/rings.h"
#include "shim/wait/watch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>

/* Ignores the environment in a set-user-ID program: its caller could make it write a log anywhere, or believe a false handover. */
static const char *environment(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}

static void before_fork(void)
{
	conversion_before_fork();
	conn_note_fork();
}

/* The other threads don't exist in the child: this repairs the data that they were changing. */
static void in_child(void)
{
	conn_repair_in_child();
	follow_in_child();
	converters_repair_in_child();
	user_cache_repair_in_child();
}

/* Switches conversion off behind a library that redirects connections to proxies: its user wants it to get all of them. */
static void yield_to_proxy(struct settings *settings)
{
	const char *proxy = beneath_proxy();

	if (!settings->enabled || !proxy)
		return;
	settings->enabled = false;
	snprintf(settings->problem, sizeof(settings->problem),
		 "%.100s stands behind libconvert.so and takes connections to its proxies: put libconvert.so "
		 "behind it in LD_PRELOAD",
		 proxy);
}

__attribute__((constructor)) static void init(void)
{
	static struct settings settings;

	next_bind();
	beneath_bind();
	rings_init();
	if (beneath_is_libc(clock_library()))
		clock_use_library();
	conn_init();
	watch_init();
	deadline_timer_init();
	pthread_atfork(before_fork, conn_note_fork, in_child);
	settings_read(&settings, environment);
	yield_to_proxy(&settings);
	log_open(settings.log);
	if (settings.warn)
		log_open_warnings();
	children_init(&settings, environment(SETTINGS_SUPERVISOR_VARIABLE));
	if (!settings.enabled)
		log_line("nothing is converted: %s", settings.problem);
	if (settings.enabled && log_is_on())
		networks_tell_missing(&settings.paths, log_line);
	conversion_init(&settings);
	exec_handover_adopt();
}

__attribute__((destructor)) static void fini(void)
{
	if (!conn_none_handled())
		leave_all(LEAVE_ALL);
}
