/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.h - what a program started here must know of the sockets that it inherits
 *
 * Another program, or this one anew, has none of our memory, but it may have our descriptors. What
 * is known of their sockets goes into its environment, in one variable, which its own shim takes
 * out again before the program begins.
 */
#ifndef SHIM_HANDOVER_H
#define SHIM_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#define HANDOVER_VARIABLE "CONVERT_SOCKETS"

/* Bytes: some 150 a socket, and early data, 4096 bytes at most, twice as much. */
#define HANDOVER_TEXT_MAX 16384u

/* Looks at how the library was loaded. Once, at start. */
void handover_init(void);

/* Takes over what the environment says, and takes it out of there. Once, at start, after all others. */
void handover_adopt(void);

/* May a program with this environment need to know anything? Cheap if no socket was ever connected. */
bool handover_is_due(char *const envp[]);

/* Which descriptors a program gets. */
enum handover_way {
	HANDOVER_AS_THEY_ARE, /* those that this process has now */
	HANDOVER_CHANGED,     /* others may be made of them before: posix_spawn_file_actions_t */
};

/*
 * handover_finish() - before a program without our help: no response in its standard input
 * A program can't know of other descriptors unless it is told, so that these are inherited on purpose.
 */
void handover_finish(enum handover_way way);

/*
 * handover_write() - the variable, "NAME=value", for a program started in this way
 * Marks the sockets as given away. Returns its length, or 0 if there is nothing to hand over. For
 * vfork() children as well: allocates nothing, and writes to no memory but @out and those marks.
 */
size_t handover_write(char out[HANDOVER_TEXT_MAX], enum handover_way way);

#endif
