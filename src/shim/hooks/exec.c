/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c - starts programs, and tells them about the sockets that they inherit
 *
 * If the program may inherit a socket of ours, we copy its environment and add a variable (exec_handover.c). The copy is a mapping; in a
 * vfork() child, which must leave no trace in its parent's memory, it is on the stack. We pass on all other arguments unchanged: the C
 * library searches PATH. If the new program lacks our library, we end the handshakes on its standard descriptors before.
 *
 * The C library starts the shells of system() and popen() by calls of its own, with an environment that we can't change. So they learn
 * nothing, and handshakes end before, as before a fork().
 */
#include "config.h"

#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/process/process.h"
#include "shim/socket/conn.h"
#include "client/client_log.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRINGS_MAX 4096 /* of an environment or of arguments: 32 KiB of stack */

/* The function to call in the end. */
enum start_by { BY_EXECVE, BY_EXECVPE, BY_FEXECVE, BY_EXECVEAT, BY_POSIX_SPAWN, BY_POSIX_SPAWNP };

/* That function, and all of its arguments but the environment. */
struct start {
	enum start_by by;
	enum exec_handover_way way;
	const char *path;
	char *const *argv;
	int fd, flags;
	pid_t *pid;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attributes;
};

static int start_by(const struct start *start, char *const envp[])
{
	switch (start->by) {
	case BY_EXECVE:
		return next.execve(start->path, start->argv, envp);
	case BY_EXECVPE:
		return next.execvpe(start->path, start->argv, envp);
	case BY_FEXECVE:
		return next.fexecve(start->fd, start->argv, envp);
	case BY_EXECVEAT:
		return next.execveat(start->fd, start->path, start->argv, envp, start->flags);
	case BY_POSIX_SPAWN:
		return next.posix_spawn(start->pid, start->path, start->actions, start->attributes, start->argv, envp);
	case BY_POSIX_SPAWNP:
		return next.posix_spawnp(start->pid, start->path, start->actions, start->attributes, start->argv, envp);
	}
	__builtin_unreachable();
}

/* Returns the number of strings in an environment, or in a list of arguments. */
static size_t strings_count(char *const envp[])
{
	size_t count = 0;

	while (envp && envp[count])
		count++;
	return count;
}

/* @text: room for EXEC_HANDOVER_TEXT_MAX; @extended: for all variables of @envp and two pointers more */
static int start_with(const struct start *start, char *const envp[], char *text, char **extended)
{
	size_t used = 0;

	if (!exec_handover_write(text, start->way))
		return start_by(start, envp);
	for (; envp && *envp; envp++)
		if (strncmp(*envp, EXEC_HANDOVER_VARIABLE "=", strlen(EXEC_HANDOVER_VARIABLE "=")) != 0)
			extended[used++] = *envp;
	extended[used++] = text;
	extended[used] = NULL;
	return start_by(start, extended);
}

/* Starts the program with the new environment on the stack. For vfork() children, which share their parent's memory. */
__attribute__((noinline)) static int start_from_stack(const struct start *start, char *const envp[])
{
	char text[EXEC_HANDOVER_TEXT_MAX];
	size_t count = strings_count(envp);

	if (count > STRINGS_MAX) {
		log_line("%s: more than %d variables: it isn't told of the sockets that it inherits; unset some",
			 start->path ? start->path : "exec", STRINGS_MAX);
		return start_by(start, envp);
	}
	return start_with(start, envp, text, alloca((count + 2) * sizeof(char *)));
}

/* Starts the program with the new environment in a mapping, which ends with an exec(): threads may have little stack. */
static int start_informed(const struct start *start, char *const envp[])
{
	size_t room = EXEC_HANDOVER_TEXT_MAX + (strings_count(envp) + 2) * sizeof(char *);
	char *memory = conn_is_owner() ? next_map(room) : NULL;
	int ret;

	if (!memory)
		return start_from_stack(start, envp);
	ret = start_with(start, envp, memory, (char **)(memory + EXEC_HANDOVER_TEXT_MAX));
	next_unmap(memory, room);
	return ret;
}

/* Returns the path of the convertize that shall run the program, or NULL to start the program itself. */
static const char *look_at(const struct start *start, char *const envp[])
{
	bool has_fd = start->by == BY_FEXECVE || start->by == BY_EXECVEAT;

	return children_look(&(struct child){
		.directory = has_fd ? start->fd : AT_FDCWD,
		.path = start->path,
		.searched = start->by == BY_EXECVPE || start->by == BY_POSIX_SPAWNP,
		.environment = envp,
	});
}

#define SUPERVISED_WORDS 7 /* in front of the program's arguments */

/* Starts convertize, which runs the program under supervision, as the library doesn't reach it. */
__attribute__((noinline)) static int start_supervised(const struct start *start, const char *convertize, char *const envp[])
{
	struct start with_supervisor = *start;
	size_t count = strings_count(start->argv);
	const char **words;
	int ret;

	if (count > STRINGS_MAX) {
		log_warning("%s can't be converted: it has more than %d arguments", start->path, STRINGS_MAX);
		return start_by(start, envp);
	}
	words = alloca((SUPERVISED_WORDS + count + 2) * sizeof(char *));
	words[0] = "convertize";
	words[1] = "--method";
	words[2] = "supervise";
	words[3] = "--executable";
	words[4] = start->path;
	words[5] = "--force"; /* run the program even if it can't be converted */
	words[6] = "--";
	words[7] = start->path; /* in place of argv[0], if the caller gives no arguments */
	memcpy(&words[SUPERVISED_WORDS], start->argv, count * sizeof(char *));
	words[SUPERVISED_WORDS + (count ? count : 1)] = NULL;
	with_supervisor.path = convertize;
	with_supervisor.argv = (char *const *)(uintptr_t)words;
	ret = start_by(&with_supervisor, envp);
	if (ret == 0)
		return 0;
	/* A sandbox, such as Landlock's, may forbid convertize and not the program. */
	log_warning("%s: can't be converted: %s, which would supervise it, can't be executed here", start->path, convertize);
	return start_by(start, envp);
}

/* Reads the environment only if we have something to tell the program. The kernel refuses an unreadable one. */
static int start_program(const struct start *start, char *const envp[])
{
	char *const path[] = { (char *)(uintptr_t)start->path, NULL };
	const char *convertize = NULL;
	bool informed;

	if ((children_are_watched || conn_next_fd(0) >= 0) && !usermem_has_strings(envp))
		return start_by(start, envp);
	if (children_are_watched && usermem_has_strings(path))
		convertize = look_at(start, envp);
	if (convertize && usermem_has_strings(start->argv)) {
		exec_handover_prepare(start->way, false);
		return start_supervised(start, convertize, envp);
	}
	informed = exec_handover_is_due(envp);
	exec_handover_prepare(start->way, informed);
	return informed ? start_informed(start, envp) : start_by(start, envp);
}

/* Takes the response off each connection that exec() closes: the kernel resets a socket that is closed with unread bytes. */
static int become_program(const struct start *start, char *const envp[])
{
	if (!conn_none_handled() && conn_is_owner())
		leave_all(LEAVE_CLOEXEC);
	return start_program(start, envp);
}

HOOK(int, execve, (const char *path, char *const argv[], char *const envp[]))
{
	return become_program(&(struct start){ .by = BY_EXECVE, .path = path, .argv = argv }, envp);
}

HOOK(int, execv, (const char *path, char *const argv[]))
{
	return hook_execve(path, argv, environ);
}

HOOK(int, execvpe, (const char *file, char *const argv[], char *const envp[]))
{
	return become_program(&(struct start){ .by = BY_EXECVPE, .path = file, .argv = argv }, envp);
}

HOOK(int, execvp, (const char *file, char *const argv[]))
{
	return hook_execvpe(file, argv, environ);
}

HOOK(int, fexecve, (int fd, char *const argv[], char *const envp[]))
{
	return become_program(&(struct start){ .by = BY_FEXECVE, .fd = fd, .argv = argv }, envp);
}

HOOK(int, execveat, (int dirfd, const char *path, char *const argv[], char *const envp[], int flags))
{
	return become_program(&(struct start){ .by = BY_EXECVEAT, .fd = dirfd, .path = path,
					      .argv = argv, .flags = flags },
			     envp);
}

/*
 * EXEC_LIST_HOOK(name, hook, environment) defines a hook that takes the program's arguments as its own, up to a NULL. It makes an array of
 * them on the stack. @environment is evaluated with @args behind the NULL.
 */
#define EXEC_LIST_HOOK(name, hook, environment)                                                    \
	HOOK(int, name, (const char *path, const char *arg0, ...))                                 \
	{                                                                                          \
		char *const *envp;                                                                 \
		size_t count = 1;                                                                  \
		va_list args, ahead;                                                               \
		char **argv;                                                                       \
                                                                                                   \
		va_start(args, arg0);                                                              \
		va_copy(ahead, args);                                                              \
		for (const char *arg = arg0; arg; arg = va_arg(ahead, const char *))               \
			count++;                                                                   \
		va_end(ahead);                                                                     \
		argv = alloca(count * sizeof(*argv));                                              \
		count = 0;                                                                         \
		for (char *arg = (char *)(uintptr_t)arg0; (argv[count++] = arg);)                  \
			arg = va_arg(args, char *);                                                \
		envp = environment;                                                                \
		va_end(args);                                                                      \
		return hook(path, argv, envp);                                                     \
	}

EXEC_LIST_HOOK(execl, hook_execve, environ)
EXEC_LIST_HOOK(execlp, hook_execvpe, environ)
EXEC_LIST_HOOK(execle, hook_execve, va_arg(args, char *const *))

/* Nobody can read the actions afterwards, so we note here a socket of which the program will get a duplicate. */
HOOK(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *actions, int fd, int to))
{
	struct conn *conn = conn_of(fd);

	if (conn)
		conn->socket.given = true;
	return next.posix_spawn_file_actions_adddup2(actions, fd, to);
}

#define SPAWN_HOOK(name, start_by)                                                                 \
	HOOK(int, name, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,  \
			 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])) \
	{                                                                                          \
		return start_program(&(struct start){ .by = start_by,                              \
						      .way = actions ? EXEC_HANDOVER_CHANGED : EXEC_HANDOVER_AS_THEY_ARE, \
						      .pid = pid, .path = path, .actions = actions, \
						      .attributes = attributes, .argv = argv },    \
				     envp);                                                        \
	}

SPAWN_HOOK(posix_spawn, BY_POSIX_SPAWN)
SPAWN_HOOK(posix_spawnp, BY_POSIX_SPAWNP)

static void prepare_for_shell(void)
{
	conversion_before_fork();
	exec_handover_prepare(EXEC_HANDOVER_AS_THEY_ARE, false);
}

HOOK(int, system, (const char *command))
{
	prepare_for_shell();
	return next.system(command);
}

HOOK(FILE *, popen, (const char *command, const char *mode))
{
	prepare_for_shell();
	return next.popen(command, mode);
}

/*
 * vfork(2): ends handshakes before, as fork() does
 *
 * The child of vfork() returns first, on its parent's stack. So no function may be between vfork() and its caller: the entry is in assembly
 * language, and jumps. On other machines vfork() isn't a hook; a child finds unfinished handshakes there, of which exec_handover_prepare()
 * gives a program nothing.
 */

#if defined(__x86_64__) || defined(__i386__) || (defined(__aarch64__) && defined(__LP64__))

typedef pid_t vfork_function(void);

static vfork_function *next_vfork = fork; /* for the constructors of other libraries that run before ours */

__attribute__((constructor)) static void bind_vfork(void)
{
	void *found = dlsym(RTLD_NEXT, "vfork");

	if (found)
		memcpy(&next_vfork, &found, sizeof(found));
}

/* Returns the address to which the entry jumps. */
vfork_function *vfork_prepare(void);
__attribute__((used)) vfork_function *vfork_prepare(void)
{
	conversion_before_fork();
	return next_vfork;
}

HOOK_NAME(vfork)

#define VFORK_ENTRY(type, ...)             \
	__asm__(".pushsection .text\n"     \
		".globl vfork\n"           \
		".type vfork, " type "\n"  \
		".p2align 4\n"             \
		"vfork:\n"                 \
		"	.cfi_startproc\n"   \
		__VA_ARGS__                \
		"	.cfi_endproc\n"     \
		".size vfork, . - vfork\n" \
		".popsection\n")

#if defined(__x86_64__)
VFORK_ENTRY("@function",
	"	endbr64\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call vfork_prepare\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n");
#elif defined(__i386__)
VFORK_ENTRY("@function",
	"	endbr32\n"
	"	subl $12, %esp\n"
	"	.cfi_adjust_cfa_offset 12\n"
	"	call vfork_prepare\n"
	"	addl $12, %esp\n"
	"	.cfi_adjust_cfa_offset -12\n"
	"	jmp *%eax\n");
#else
VFORK_ENTRY("%function",
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 29, -16\n"
	"	.cfi_offset 30, -8\n"
	"	bl vfork_prepare\n"
	"	ldp x29, x30, [sp], #16\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	mov x16, x0\n"
	"	br x16\n");
#endif

#endif
