/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - the flag of thread.h that says whether this process is one of ours */
#include "config.h"

#include "common/thread.h"

bool thread_process_is_ours;
