/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.h - what a program started here must know of the sockets that it inherits
 *
 * After an exec another program has our descriptors and none of our memory. So what is known of the sockets goes into
 * a variable of its environment, which the shim in that program takes out again before the program begins.
 */
#ifndef SHIM_HANDOVER_H
#define SHIM_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#define HANDOVER_VARIABLE "CONVERT_SOCKETS"

/* In bytes. A socket takes some 100. */
#define HANDOVER_TEXT_MAX 16384u

/* Looks at how the library was loaded. Once, at start. */
void handover_init(void);

/* Takes over what the environment says of sockets, and removes it there. Once, at start, when all else has been initialized. */
void handover_adopt(void);

/* May a program with this environment need to know anything? Cheap if no socket was ever connected. */
bool handover_is_due(char *const envp[]);

/* Which descriptors a program is started with. */
enum handover_way {
	HANDOVER_AS_THEY_ARE, /* those that this process has now */
	HANDOVER_CHANGED,     /* others may be made of them before: posix_spawn_file_actions_t */
};

/*
 * handover_prepare() - bring connections to an end that can't be handed to a program
 * @informed: it is told of its sockets by handover_write(). Of others it is the standard descriptors that are looked after: such a
 * program doesn't know that it inherits more, unless it was told so on purpose.
 * Waits for CONVERT_TIMEOUT at most. errno stays as it was. For vfork() children as well.
 */
void handover_prepare(enum handover_way way, bool informed);

/*
 * handover_write() - the variable, "NAME=value", for a program started in this way
 * Marks the sockets as given away, after handover_prepare(). Returns its length, or 0 if there is nothing to hand over. For
 * vfork() children as well: allocates nothing, and writes to no memory but @out and those marks.
 */
size_t handover_write(char out[HANDOVER_TEXT_MAX], enum handover_way way);

#endif
