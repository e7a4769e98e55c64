/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - all that convertd was told: immutable once read */
#include "config.h"

#include "convertd/config/settings.h"

#include "convertd/policy/cookies.h"

#include <stdlib.h>

void settings_destroy(struct settings *settings)
{
	if (!settings)
		return;
	access_fini(&settings->access);
	cookies_destroy(settings->cookies);
	free(settings);
}
