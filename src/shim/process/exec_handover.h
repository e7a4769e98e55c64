/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec_handover.h - what a program started here must know of the sockets that it inherits
 *
 * After an exec another program has our descriptors and none of our memory. So what is known of the sockets goes into
 * a variable of its environment, which the shim in that program takes out again before the program begins.
 */
#ifndef SHIM_EXEC_HANDOVER_H
#define SHIM_EXEC_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#define EXEC_HANDOVER_VARIABLE "CONVERT_SOCKETS"

/* In bytes. A socket takes some 100. */
#define EXEC_HANDOVER_TEXT_MAX 16384u

/* Takes over what the environment says of sockets, and removes it there. Once, at start, when all else has been initialized. */
void exec_handover_adopt(void);

/* May a program with this environment need to know anything? Cheap if no socket was ever connected. */
bool exec_handover_is_due(char *const envp[]);

/* Which descriptors a program is started with. */
enum exec_handover_way {
	EXEC_HANDOVER_AS_THEY_ARE, /* those that this process has now */
	EXEC_HANDOVER_CHANGED,     /* others may be made of them before: posix_spawn_file_actions_t */
};

/*
 * exec_handover_prepare() - bring connections to an end that can't be handed to a program
 * @informed: it is told of its sockets by exec_handover_write(). Of others it is the standard descriptors that are looked after: such a
 * program doesn't know that it inherits more, unless it was told so on purpose.
 * Waits for CONVERT_TIMEOUT at most. errno stays as it was. For vfork() children as well.
 */
void exec_handover_prepare(enum exec_handover_way way, bool informed);

/*
 * exec_handover_write() - the variable, "NAME=value", for a program started in this way
 * Marks the sockets as given away, after exec_handover_prepare(). Returns its length, or 0 if there is nothing to hand over. For
 * vfork() children as well: allocates nothing, and writes to no memory but @out and those marks.
 */
size_t exec_handover_write(char out[EXEC_HANDOVER_TEXT_MAX], enum exec_handover_way way);

#endif
