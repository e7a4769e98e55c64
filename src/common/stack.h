/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.h - is there room on the stack for what a connection can do without? */
#ifndef COMMON_STACK_H
#define COMMON_STACK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * stack_is_small() - is this a signal handler on a stack of its own (sigaltstack(2))?
 * That may have 8 KiB and no more (SIGSTKSZ), more than half of which a wait of ours takes. What takes as much again is left to another
 * connection or to a later look: to learn from a connection and from the user's others, to look at another path, to write to the log.
 */
static inline bool stack_is_small(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

#endif
