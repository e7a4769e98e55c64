/* SPDX-License-Identifier: BSD-3-Clause */
/* manage.h - "convertize paths --manage": keeps endpoints, rules and tables right for as long as it runs */
#ifndef PATHS_MANAGE_H
#define PATHS_MANAGE_H

#include "paths/plan.h"

#include <stdbool.h>

enum paths_task {
	PATHS_TASK_MANAGE, /* until a signal ends it; then all that was made is taken away */
	PATHS_TASK_ONCE,   /* make it right, and leave it so */
	PATHS_TASK_REMOVE, /* take away what another one has left */
};

/* paths_manage() - returns an exit status: 0, or 1 after saying what has failed */
int paths_manage(const struct paths_choice *choice, enum paths_task task, bool dry_run);

#endif
