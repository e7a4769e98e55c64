/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - the fact that a process tells thread.h about all of its threads */
#include "config.h"

#include "common/thread.h"

bool thread_process_is_ours;
