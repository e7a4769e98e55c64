/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - what the process says about all its threads */
#include "config.h"

#include "common/thread.h"

bool thread_process_is_ours;
