/* SPDX-License-Identifier: BSD-3-Clause */
/* manage.h - "convertize paths --manage": keeps endpoints, rules and tables right for as long as it runs */
#ifndef PATHS_MANAGE_H
#define PATHS_MANAGE_H

#include "paths/plan.h"

#include <stdbool.h>

enum paths_task {
	PATHS_TASK_MANAGE, /* run until a signal comes, then remove all that we made */
	PATHS_TASK_ONCE,   /* make the endpoints, rules and tables, and leave them */
	PATHS_TASK_REMOVE, /* remove all that another manager left */
};

/* paths_manage() - do the task; returns an exit status: 0, or 1 after reporting the failure */
int paths_manage(const struct paths_choice *choice, enum paths_task task, bool dry_run);

#endif
