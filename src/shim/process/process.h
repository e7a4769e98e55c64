/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - forks, started programs, the end of connections and of the process, and descriptors that travel */
#ifndef SHIM_PROCESS_H
#define SHIM_PROCESS_H

#include "client/settings.h"
#include "shim/socket/conn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* --- leave.c: ends a connection, or our work on it: close, exit, shutdown, descriptors for the C library or other processes --- */

/*
 * leave_by_close() - prepare for the application's close of @fd
 * Call it before the kernel closes any descriptor. If @fd is the last descriptor of a connection that the application has used, takes the
 * response off the stream, which may take up to CONVERSION_FINISH_MS. Forgets the conn of @fd. A second call for the same close changes
 * nothing. errno stays as it was.
 */
void leave_by_close(int fd);

/* Does the same for all descriptors from @first to @last; their connections share the time. */
void leave_by_close_range(unsigned int first, unsigned int last);

/* Takes the response likewise before dup2() makes @fd another file's descriptor; forgets no conn, since dup2() may fail. */
void leave_by_overwrite(int fd);

/* leave_all() - take the responses likewise, of all conns or those with FD_CLOEXEC, when the process ends or execs; forgets none */
enum leave_which { LEAVE_ALL, LEAVE_CLOEXEC };
void leave_all(enum leave_which which);

/*
 * leave_to_stdio() - prepare for @fd becoming a stream, which the C library reads and writes past the hooks
 * If the application believes that the connection is established, waits until the response is off the stream: 150 s at most for a blocking
 * socket, else CONVERSION_FINISH_MS. Marks every socket, so that later steps report it as established only once we have taken the response
 * off. errno stays as it was.
 */
void leave_to_stdio(int fd);

/* --- the application dissolves a connection: shutdown(), and connect() to AF_UNSPEC --- */

/*
 * dissolve_shutdown() - shutdown(2) on a @conn in PHASES_HANDLED
 * In SYN_SENT dissolves the connection, whatever @how says, and leaves ECONNRESET behind. If the application believes that it is connected,
 * since it was told so or has sent something, we shut the socket down once it is connected. Returns 0 or -errno.
 */
int dissolve_shutdown(struct conn *conn, int fd, int how);

/* Does shutdown(2) on an IDLE @conn: the kernel refuses it, but a later connection of the socket is shut down from its beginning. */
int shutdown_by_kernel(struct conn *conn, int fd, int how);

/*
 * dissolve_connection() - connect(2) to @addr of AF_UNSPEC, in any state
 * Then the socket can be connected again. A connection, or an attempt at one, leaves ECONNRESET behind. Returns 0 or -errno.
 */
int dissolve_connection(struct conn *conn, int fd, const struct sockaddr *addr, socklen_t len);

/* --- descriptors that leave for another process over a Unix socket --- */

/*
 * scm_rights_leave() - prepare the sockets in the SCM_RIGHTS of @msg, which is about to be sent (unix(7))
 * The caller knows that @msg and all of its control data are readable.
 */
void scm_rights_leave(const struct msghdr *msg);

/* --- children.c: reports started programs that the library doesn't reach, or leaves them to a supervisor --- */

/* A program that exec(3) or posix_spawn(3) is about to start. */
struct child {
	int directory;    /* @path is relative to it, usually AT_FDCWD; without a path, the program itself */
	const char *path; /* NULL or empty: @directory is the program */
	bool searched;    /* @path is a name to look up in PATH */
	char *const *environment;
};

extern bool children_are_watched;

/* Does this environment load our library into a program? After children_init(). */
bool children_have_library(char *const environment[]);

/*
 * children_init() - find out how the library was loaded; if it is enabled, a supervisor, a log or CONVERT_WARN sets children_are_watched
 * @supervisor: the value of SETTINGS_SUPERVISOR_VARIABLE, or NULL
 */
void children_init(const struct settings *settings, const char *supervisor);

/*
 * children_look() - inspect a program before its start
 * If our library doesn't reach it and a supervisor does, returns the path of the convertize that has to run it instead. Else returns NULL,
 * and logs a line if the program's connections won't be converted. Allocates nothing, and leaves nothing behind in the memory of a vfork()
 * child's parent.
 */
const char *children_look(const struct child *child);

/* --- exec_handover.c: tells a started program about the sockets that it inherits, by a variable of its environment --- */

#define EXEC_HANDOVER_VARIABLE "CONVERT_SOCKETS"

/* In bytes. A socket takes some 100. */
#define EXEC_HANDOVER_TEXT_MAX 16384u

/* Takes over the sockets from the variable in the environment, and removes it. Call once, at start, after all other initializations. */
void exec_handover_adopt(void);

/* May a program with this environment need the variable? Cheap if this process has no TCP socket. */
bool exec_handover_is_due(char *const envp[]);

/* The descriptors that the program gets. */
enum exec_handover_way {
	EXEC_HANDOVER_AS_THEY_ARE, /* those that this process has now */
	EXEC_HANDOVER_CHANGED,     /* others may be duplicated from them before: posix_spawn_file_actions_t */
};

/*
 * exec_handover_prepare() - end pending connections that we can't hand over to a program
 * @informed: exec_handover_write() will tell the program about its sockets. For other programs we handle only the standard descriptors,
 * since they don't look for more.
 * Waits for CONVERT_TIMEOUT at most. errno stays as it was. Also for vfork() children.
 */
void exec_handover_prepare(enum exec_handover_way way, bool informed);

/*
 * exec_handover_write() - write the variable, "NAME=value", for a program started in this way
 * Call after exec_handover_prepare(). Marks the sockets as shared (conn_mark_shared()). Returns the length, or 0 if there is nothing to
 * hand over. Also for vfork() children: allocates nothing, and writes only to @out and those marks.
 */
size_t exec_handover_write(char out[EXEC_HANDOVER_TEXT_MAX], enum exec_handover_way way);

#endif
