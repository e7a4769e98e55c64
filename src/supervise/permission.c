/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * permission.c - whether the supervisor may act for a program, and sockets that belong to the program's user
 *
 * The supervisor makes sockets and connections in its own name. So they would escape all that the kernel forbids the program by its
 * identity:
 *
 *	owner rules of firewalls, uid    a socket belongs to the file system user and groups of the thread that makes it.
 *	  ranges of policy rules         permission_socket() takes the program's for that moment. Only root's supervisor meets other users.
 *	cgroup programs, net_cls         the supervisor acts only for programs in its own control group
 *	AppArmor, SELinux, Smack         the supervisor acts only for programs with its own label
 *	a seccomp filter                 /proc counts a process's filters. It acts only for processes with no more than at the start
 *	Landlock                         no file shows it. The calls that restrict a thread stop, and the supervisor notes the process
 *
 * It leaves others to the kernel, and says so in the log. calls.c checks network namespaces.
 *
 * Children inherit Landlock's restrictions. So a process is restricted if it or one of its ancestors has restricted itself. An orphan has
 * lost its ancestors: it counts as restricted if it started after the first restriction of any process. So do the children of processes
 * that adopt orphans: by PR_SET_CHILD_SUBREAPER, or as the first of a PID namespace. Only rules for TCP count, which
 * landlock_create_ruleset() shows.
 */
#include "config.h"

#include "supervise/permission.h"

#include "client/client_log.h"
#include "supervise/sockets.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GROUPS_MAX 256
#define TICKS_PER_SECOND 100 /* of times in /proc/PID/stat, on all architectures that filter.c knows */

#ifdef SYS_setfsuid32
#define SETFSUID SYS_setfsuid32
#define SETFSGID SYS_setfsgid32
#define SETGROUPS SYS_setgroups32
#else
#define SETFSUID SYS_setfsuid
#define SETFSGID SYS_setfsgid
#define SETGROUPS SYS_setgroups
#endif

/* A process, and when it started, in ticks since the host's start: a number may be another process by now. */
struct process {
	pid_t pid;
	uint64_t started;
};

struct process_list {
	struct process *list;
	size_t count;
};

static struct {
	pid_t self, program;
	uid_t uid; /* the supervisor's */
	gid_t gid;
	long filters;       /* seccomp filters of a program that has none of its own */
	bool any_filter;    /* a program may have installed one */
	bool any_tcp_rules; /* a program has made Landlock rules for TCP */
	uint64_t since;     /* when the first process restricted itself by Landlock, in ticks; 0: none has */
	struct process_list restricted, adopting;
	pid_t tid; /* the thread that permission_denial() was asked for last, and its identity */
	struct tracee_identity identity;
} state;

static bool process_read(pid_t pid, struct process *out, pid_t *parent)
{
	*out = (struct process){ .pid = pid };
	return tracee_started(pid, &out->started, parent);
}

static void list_add(struct process_list *list, pid_t tid)
{
	struct process *more = realloc(list->list, (list->count + 1) * sizeof(*more));
	pid_t parent;

	if (!more)
		abort(); /* rather than forget the process */
	list->list = more;
	list->count += process_read(tracee_process(tid), &more[list->count], &parent);
}

static bool list_has(const struct process_list *list, const struct process *process)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->list[i].pid == process->pid && list->list[i].started == process->started)
			return true;
	return false;
}

void permission_begin(pid_t program)
{
	state.self = getpid();
	state.uid = geteuid();
	state.gid = getegid();
	state.program = program;
	state.filters = tracee_number(program, "Seccomp_filters");
}

/* Returns the time in ticks as /proc/PID/stat counts them. */
static uint64_t now_ticks(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * TICKS_PER_SECOND + (uint64_t)now.tv_nsec / (1000000000 / TICKS_PER_SECOND);
}

void permission_note(const struct call *call)
{
	uint64_t rules[2]; /* struct landlock_ruleset_attr: file system, network */

	switch (call->call) {
	case FILTER_SECCOMP:
		state.any_filter = true;
		break;
	case FILTER_PRCTL:
		if ((int)call->args[0] == PR_SET_CHILD_SUBREAPER)
			list_add(&state.adopting, call->tid);
		else
			state.any_filter = true;
		break;
	case FILTER_LANDLOCK_RULES:
		if (!tracee_read(call->tid, call->args[0], rules, sizeof(rules)) || rules[1])
			state.any_tcp_rules = true;
		break;
	case FILTER_LANDLOCK_RESTRICT:
		if (!state.any_tcp_rules)
			break;
		if (!state.since)
			state.since = now_ticks();
		list_add(&state.restricted, call->tid);
		break;
	default:
		break;
	}
}

/* Returns whether the process @pid adopts orphans. True if we can't read it. */
static bool adopts(pid_t pid)
{
	struct process process;
	pid_t parent;

	return pid == state.self || !process_read(pid, &process, &parent) || list_has(&state.adopting, &process) ||
	       tracee_number(pid, "NSpid") == 1;
}

/* Returns whether Landlock may restrict the process. */
static bool is_restricted(pid_t pid)
{
	struct process process;
	pid_t parent;

	for (; process_read(pid, &process, &parent); pid = parent) {
		if (list_has(&state.restricted, &process))
			return true;
		if (pid == state.program)
			return false;
		if (adopts(parent))
			return process.started >= state.since;
	}
	return true;
}

/* Reads a file that shows an identity of the thread. Returns a hash of it; 0 if it can't be read. */
static uint64_t identity_of(pid_t tid, const char *name)
{
	char text[1024];
	const ssize_t len = tracee_text(tid, name, text, sizeof(text));
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (ssize_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return len > 0 ? hash : 0;
}

/*
 * Returns a number for the thread's control group. For version 2, @identity may have it, which saves reading /proc. Of version 1 only
 * net_cls and net_prio look at sockets.
 */
static uint64_t control_group_of(pid_t tid, const struct tracee_identity *identity)
{
	static int legacy = -1;
	char text[1024];

	if (legacy < 0)
		legacy = tracee_text(state.self, "cgroup", text, sizeof(text)) > 0 && (strstr(text, "net_cls") || strstr(text, "net_prio"));
	return identity->control_group && !legacy ? identity->control_group : identity_of(tid, "cgroup");
}

/* Skips the control group for a socket of ours: it was compared when the socket was made. */
const char *permission_denial(pid_t tid, bool own_socket)
{
	static int labels = -1;
	struct tracee_identity own;

	if (!own_socket) {
		tracee_identify(state.self, &own);
		tracee_identify(tid, &state.identity);
		state.tid = tid;
		if (control_group_of(tid, &state.identity) != control_group_of(state.self, &own))
			return "it is in another control group";
	}
	if (labels < 0)
		labels = identity_of(state.self, "attr/current") != 0;
	if (labels && identity_of(tid, "attr/current") != identity_of(state.self, "attr/current"))
		return "it has another security label";
	if (state.any_filter && tracee_number(tid, "Seccomp_filters") != state.filters)
		return "it has a seccomp filter of its own";
	if (state.since && is_restricted(tracee_process(tid)))
		return "Landlock restricts it";
	return NULL;
}

/* --- sockets of the program's user --- */

/* Returns whether the calling thread's file system user and groups are these now. */
static bool become(uid_t uid, gid_t gid, const gid_t *groups, int count)
{
	return syscall(SETGROUPS, count, groups) == 0 && (syscall(SETFSGID, gid), syscall(SETFSGID, -1) == (long)gid) &&
	       (syscall(SETFSUID, uid), syscall(SETFSUID, -1) == (long)uid);
}

static int socket_of(pid_t tid, uid_t uid, gid_t gid, int domain, int type, int protocol)
{
	gid_t own_groups[GROUPS_MAX], groups[GROUPS_MAX];
	int own_count, count, made;

	if (uid == state.uid && gid == state.gid) {
		made = socket(domain, type, protocol);
		return made < 0 ? -errno : made;
	}
	own_count = getgroups(GROUPS_MAX, own_groups);
	count = tracee_groups(tid, groups, GROUPS_MAX);
	if (own_count < 0 || count < 0 || !become(state.uid, state.gid, groups, count))
		return -EACCES;
	made = become(uid, gid, groups, count) ? socket(domain, type, protocol) : -1;
	made = made < 0 ? -errno : made;
	if (!become(state.uid, state.gid, own_groups, own_count))
		abort(); /* a supervisor with a program's identity would harm others */
	return made;
}

int permission_socket(pid_t tid, int domain, int type, int protocol)
{
	return tid == state.tid ? socket_of(tid, state.identity.uid, state.identity.gid, domain, type, protocol) : -EACCES;
}

int permission_socket_like(pid_t tid, int like, int domain, int type, int protocol)
{
	struct stat owner;

	return fstat(like, &owner) == 0 ? socket_of(tid, owner.st_uid, owner.st_gid, domain, type, protocol) : -errno;
}
